// The official `openai` package against Chat Completions, Responses and Completions.

import OpenAI from "openai";
import { all, ASK, error, KEY, PARAMETERS, play, STAGE, tide, TIDE, URL } from "./place.mjs";

const client = new OpenAI({ baseURL: `${URL}/v1`, apiKey: KEY, maxRetries: 0 });
const staged = new OpenAI({ baseURL: `${STAGE}/v1`, apiKey: KEY, maxRetries: 1 });
const messages = [{ role: "user", content: ASK }];
const spec = { name: "get_tide", description: "The tide at a port", parameters: PARAMETERS };
const ports = (calls) => calls.map((call) => JSON.parse(call.arguments).port);

const chat = (script, more = {}) =>
  client.chat.completions.create({ model: "script", messages, ...more }, { headers: play(script) });

const chatStream = (script, more = {}) =>
  client.chat.completions.stream(
    { model: "script", messages, stream_options: { include_usage: true }, ...more },
    { headers: play(script) },
  );

async function chatTools() {
  const tools = [{ type: "function", function: spec }];
  const made = [
    (await chat("tools", { tools })).choices[0].message,
    await chatStream("tools", { tools }).finalMessage(),
  ];
  // The SDK's own loop; the stage plays the last answer.
  const runner = staged.chat.completions.runTools(
    {
      model: "script",
      messages,
      tools: [{ type: "function", function: { ...spec, parse: JSON.parse, function: ({ port }) => tide(port) } }],
    },
    { headers: play("tools") },
  );
  return {
    calls: made.map((message) => ports(message.tool_calls.map((call) => call.function))),
    answer: await runner.finalContent(),
  };
}

async function chatCancelled() {
  const stream = await chat("long", { stream: true });
  for await (const chunk of stream) {
    const text = chunk.choices[0]?.delta.content;
    if (text) {
      stream.controller.abort();
      return text;
    }
  }
}

async function chatOutcome() {
  const whole = await chat("say");
  const streamed = await chatStream("say").finalChatCompletion();
  const schema = { type: "json_schema", json_schema: { name: "tide", strict: true, schema: TIDE } };
  const shaped = await chat("", { response_format: schema });
  return {
    said: [whole, streamed].map((made) => made.choices[0].message.content),
    output_tokens: [whole, streamed].map((made) => made.usage.completion_tokens),
    ...(await chatTools()),
    thought: (await chat("think")).choices[0].message.reasoning_content,
    structured: JSON.parse(shaped.choices[0].message.content),
    refused: await error(() => chat("", { temperature: 9 })),
    missing: await error(() => chat("", { model: "nope" })),
    overloaded: await error(() => staged.chat.completions.create({ model: "busy", messages })),
    lost: await error(() => chatStream("late").done()),
    cancelled: await chatCancelled(),
  };
}

const respond = (script, more = {}) =>
  client.responses.create({ model: "script", input: ASK, ...more }, { headers: play(script) });

const respondStream = (script, more = {}) =>
  client.responses.stream({ model: "script", input: ASK, ...more }, { headers: play(script) });

const callsOf = (response) => response.output.filter((item) => item.type === "function_call");

async function responsesTools() {
  const tools = [{ type: "function", strict: false, ...spec }];
  const made = [
    await respond("tools", { tools }),
    await respondStream("tools", { tools }).finalResponse(),
  ];
  const results = callsOf(made[1]).map((call) => ({
    type: "function_call_output",
    call_id: call.call_id,
    output: tide(JSON.parse(call.arguments).port),
  }));
  const last = await respond("done", { tools, input: results, previous_response_id: made[1].id });
  return { calls: made.map((response) => ports(callsOf(response))), answer: last.output_text };
}

async function responsesCancelled() {
  const stream = await respond("long", { stream: true });
  for await (const event of stream) {
    if (event.type === "response.output_text.delta") {
      stream.controller.abort();
      return event.delta;
    }
  }
}

async function responsesOutcome() {
  const whole = await respond("say");
  const streamed = await respondStream("say").finalResponse();
  const format = { type: "json_schema", name: "tide", strict: true, schema: TIDE };
  const shaped = await respond("", { text: { format } });
  const thought = await respond("think");
  const lost = (await all(await respond("late", { stream: true }))).at(-1);
  return {
    said: [whole, streamed].map((made) => made.output_text),
    output_tokens: [whole, streamed].map((made) => made.usage.output_tokens),
    ...(await responsesTools()),
    thought: thought.output.find((item) => item.type === "reasoning").content[0].text,
    structured: JSON.parse(shaped.output_text),
    refused: await error(() => respond("", { temperature: 9 })),
    missing: await error(() => respond("", { model: "nope" })),
    overloaded: await error(() => staged.responses.create({ model: "busy", input: ASK })),
    lost: lost.type,
    cancelled: await responsesCancelled(),
  };
}

async function completionsOutcome() {
  const options = { model: "script", prompt: ASK };
  const whole = await client.completions.create(options, { headers: play("say") });
  const chunks = await all(
    await client.completions.create({ ...options, stream: true }, { headers: play("say") }),
  );
  return {
    said: [whole.choices[0].text, chunks.map((chunk) => chunk.choices[0]?.text ?? "").join("")],
  };
}

console.log(
  JSON.stringify({
    chat: await chatOutcome(),
    responses: await responsesOutcome(),
    completions: await completionsOutcome(),
    models: (await all(client.models.list())).map((model) => model.id).includes("script"),
  }),
);
