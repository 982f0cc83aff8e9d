// The Vercel AI SDK (`ai`) with its providers for OpenAI, for compatible servers and for Anthropic.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";
import { ASK, error, KEY, PARAMETERS, play, STAGE, tide, TIDE, URL } from "./place.mjs";

/** More tokens than the model has room for. */
const LONG = "long ".repeat(20_000);

globalThis.AI_SDK_LOG_WARNINGS = false;

const PROVIDERS = {
  chat: (base) => createOpenAI({ baseURL: `${base}/v1`, apiKey: KEY }).chat,
  responses: (base) => createOpenAI({ baseURL: `${base}/v1`, apiKey: KEY }).responses,
  compatible: (base) =>
    createOpenAICompatible({
      name: "tokenwire",
      baseURL: `${base}/v1`,
      apiKey: KEY,
      includeUsage: true,
      supportsStructuredOutputs: true,
    }),
  messages: (base) => createAnthropic({ baseURL: `${base}/v1`, apiKey: KEY }),
};
const REASONING = {
  chat: {},
  // Why: the SDK knows by name which models of OpenAI reason, and tells others nothing of it.
  responses: { openai: { reasoningSummary: "auto", forceReasoning: true } },
  compatible: {},
  messages: { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } },
};

const options = (kind, script, { name = "script", base = URL, ...more } = {}) => ({
  model: PROVIDERS[kind](base)(name),
  prompt: ASK,
  headers: play(script),
  maxRetries: 0,
  ...more,
});
const ask = (...given) => generateText(options(...given));
/** What streamText fails with is thrown, not logged. */
async function stream(...given) {
  let failure;
  const made = streamText({ ...options(...given), onError: ({ error: found }) => (failure ??= found) });
  await made.consumeStream({ onError: (found) => (failure ??= found) });
  if (failure) throw failure;
  return made;
}

/** The whole loop is the SDK's own; the stage plays the last answer. */
async function toolTurns(kind) {
  const calls = [];
  const get_tide = tool({
    description: "The tide at a port",
    inputSchema: jsonSchema(PARAMETERS),
    execute: ({ port }) => {
      calls.at(-1).push(port);
      return tide(port);
    },
  });
  const looping = { base: STAGE, tools: { get_tide }, stopWhen: stepCountIs(3) };
  calls.push([]);
  const whole = await ask(kind, "tools", looping);
  calls.push([]);
  const streamed = await stream(kind, "tools", looping);
  return { calls, answer: whole.text, streamed_answer: await streamed.text };
}

async function cancelled(kind) {
  const stop = new AbortController();
  const made = streamText(options(kind, "long", { abortSignal: stop.signal }));
  for await (const piece of made.textStream) {
    if (piece) {
      stop.abort();
      return piece;
    }
  }
}

async function outcome(kind) {
  const whole = await ask(kind, "say");
  const streamed = await stream(kind, "say");
  const thinking = await ask(kind, "think", { providerOptions: REASONING[kind] });
  const shaped = await ask(kind, "", { output: Output.object({ schema: jsonSchema(TIDE) }) });
  const usages = [whole.usage, await streamed.usage];
  return {
    said: [whole.text, await streamed.text],
    output_tokens: usages.map((usage) => usage.outputTokens),
    ...(await toolTurns(kind)),
    thought: thinking.reasoningText ?? "",
    structured: shaped.output,
    // Why not a temperature: the SDK itself lowers those that Messages refuses.
    refused: await error(() => ask(kind, "", { prompt: LONG })),
    missing: await error(() => ask(kind, "", { name: "nope" })),
    overloaded: await error(() => ask(kind, "", { name: "busy", base: STAGE, maxRetries: 1 })),
    lost: await error(() => stream(kind, "late")),
    cancelled: await cancelled(kind),
  };
}

const outcomes = {};
for (const kind of Object.keys(PROVIDERS)) outcomes[kind] = await outcome(kind);
console.log(JSON.stringify(outcomes));
