// Drives a server with the official openai package. Argument: the server's URL.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: `${process.argv.at(-1)}/v1`,
  apiKey: "none",
  maxRetries: 0,
});
const france = {
  model: "any",
  messages: [{ role: "user", content: "What is the capital of France?" }],
  temperature: 0,
};

async function streamed(fields) {
  const chunks = [];
  for await (const chunk of await client.chat.completions.create({
    ...france,
    ...fields,
    stream: true,
  })) {
    chunks.push(chunk);
  }
  return chunks;
}

function textOf(chunks) {
  return chunks
    .flatMap((chunk) => chunk.choices)
    .map((choice) => choice.delta.content ?? "")
    .join("");
}

const whole = await client.chat.completions.create(france);
assert.match(whole.choices[0].message.content, /Paris/);
assert.equal(whole.choices[0].finish_reason, "stop");
assert.ok(whole._request_id);

const chunks = await streamed({ stream_options: { include_usage: true } });
assert.equal(textOf(chunks), whole.choices[0].message.content);
assert.deepEqual(chunks.at(-1).choices, []);
assert.equal(
  chunks.at(-1).usage.total_tokens,
  whole.usage.total_tokens,
);

const logged = await client.chat.completions.create({
  ...france,
  logprobs: true,
  top_logprobs: 2,
  max_completion_tokens: 3,
});
const content = logged.choices[0].logprobs.content;
assert.equal(content.length, 3);
for (const token of content) {
  assert.equal(token.token, token.top_logprobs[0].token);
  assert.equal(Buffer.from(token.bytes).toString(), token.token);
}

// The SDK itself assembles a stream and checks it.
const assembled = client.chat.completions.stream({ ...france, n: 2 });
const final = await assembled.finalChatCompletion();
assert.equal(final.choices.length, 2);
assert.equal(
  final.choices[1].message.content,
  whole.choices[0].message.content,
);

const completion = await client.completions.create({
  model: "any",
  prompt: ["1, 2, 3,", "a, b, c,"],
  max_tokens: 2,
  temperature: 0,
  echo: true,
});
assert.equal(completion.choices.length, 2);
assert.ok(completion.choices[1].text.startsWith("a, b, c,"));

const models = [];
for await (const model of client.models.list()) {
  models.push(model.id);
}
assert.equal(models.length, 1);

await assert.rejects(
  client.chat.completions.create({ ...france, temperature: 3 }),
  (error) =>
    error instanceof OpenAI.BadRequestError && error.param === "temperature",
);

// Going away ends the generation: the next answers do not wait for it.
const left = Date.now();
const long = await client.completions.create({
  model: "any",
  prompt: "The",
  max_tokens: 8000,
  ignore_eos: true,
  stream: true,
});
for await (const _ of long) {
  break; // aborts the request
}
const clients = Array.from({ length: 8 }, () => streamed({}));
for (const answer of await Promise.all(clients)) {
  assert.equal(textOf(answer), whole.choices[0].message.content);
}
// 8,000 tokens would take minutes.
assert.ok(Date.now() - left < 60_000);
console.log("all good");
