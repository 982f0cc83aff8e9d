// The official `@anthropic-ai/sdk` package against Messages.

import Anthropic from "@anthropic-ai/sdk";
import { all, ASK, error, KEY, PARAMETERS, play, STAGE, tide, TIDE, URL } from "./place.mjs";

const client = new Anthropic({ baseURL: URL, apiKey: KEY, maxRetries: 0 });
const staged = new Anthropic({ baseURL: STAGE, apiKey: KEY, maxRetries: 1 });
const asked = { model: "script", max_tokens: 2000, messages: [{ role: "user", content: ASK }] };
const tools = [{ name: "get_tide", description: "The tide at a port", input_schema: PARAMETERS }];
const thinking = { type: "enabled", budget_tokens: 1024 };

const ask = (script, more = {}) =>
  client.messages.create({ ...asked, ...more }, { headers: play(script) });

const stream = (script, more = {}) =>
  client.messages.stream({ ...asked, ...more }, { headers: play(script) });

const blocks = (message, type) => message.content.filter((block) => block.type === type);

async function toolTurns() {
  const made = [await ask("tools", { tools }), await stream("tools", { tools }).finalMessage()];
  const results = blocks(made[0], "tool_use").map((call) => ({
    type: "tool_result",
    tool_use_id: call.id,
    content: tide(call.input.port),
  }));
  const messages = [
    ...asked.messages,
    { role: "assistant", content: made[0].content },
    { role: "user", content: results },
  ];
  const last = await ask("done", { tools, messages });
  return {
    calls: made.map((message) => blocks(message, "tool_use").map((call) => call.input.port)),
    answer: blocks(last, "text")[0].text,
  };
}

async function cancelled() {
  const running = stream("long");
  for await (const event of running) {
    if (event.type === "content_block_delta") {
      running.abort();
      return event.delta.text;
    }
  }
}

const whole = await ask("say");
const streamed = await stream("say").finalMessage();
const counted = await client.messages.countTokens({ model: "script", messages: asked.messages });
const shaped = await ask("", { output_config: { format: { type: "json_schema", schema: TIDE } } });
console.log(
  JSON.stringify({
    messages: {
      said: [whole, streamed].map((message) => message.content[0].text),
      output_tokens: [whole, streamed].map((message) => message.usage.output_tokens),
      ...(await toolTurns()),
      thought: blocks(await stream("think", { thinking }).finalMessage(), "thinking")[0].thinking,
      structured: JSON.parse(shaped.content[0].text),
      refused: await error(() => ask("", { temperature: 9 })),
      missing: await error(() => ask("", { model: "nope" })),
      overloaded: await error(() => staged.messages.create({ ...asked, model: "busy" })),
      lost: await error(() => stream("late").finalMessage()),
      cancelled: await cancelled(),
    },
    counted: counted.input_tokens === whole.usage.input_tokens + whole.usage.cache_read_input_tokens,
    models: (await all(client.models.list())).map((model) => model.id).includes("script"),
  }),
);
