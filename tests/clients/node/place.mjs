// What the programs of this folder share: where the server is, and what they ask. test_programs.py
// runs them, and compares the one JSON object that each prints.

/** The server itself. */
export const URL = process.env.TOKENWIRE_URL;
/** The server behind a proxy that plays `done` once a tool has answered. */
export const STAGE = process.env.TOKENWIRE_STAGE;
export const KEY = "none";
export const ASK = "Tide at Brest and at Cork?";
export const PARAMETERS = {
  type: "object",
  properties: { port: { type: "string" } },
  required: ["port"],
  additionalProperties: false,
};
export const TIDE = {
  type: "object",
  properties: { port: { type: "string" }, metres: { type: "integer" } },
  required: ["port", "metres"],
  additionalProperties: false,
};

/** The header by which the mock plays that script; none, and it says what it always says. */
export const play = (script) => (script ? { "x-mock-script": script } : {});

/** The tide at a port. */
export const tide = (port) => `3.1 m at ${port}`;

/** The name of the error's class, and its HTTP status where it has one. */
export async function error(call) {
  try {
    await call();
  } catch (found) {
    const status = found.status ?? found.statusCode;
    return [found.name === "Error" ? found.constructor.name : found.name, status].filter(Boolean).join(" ");
  }
  return "no error";
}

/** Everything that a stream yields. */
export const all = async (stream) => {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
};
