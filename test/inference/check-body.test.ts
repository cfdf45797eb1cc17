/** What of a body is refused before the engine sees it: the sentence, the field, the limit and its edge. */
import Type from "typebox";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { ChatRequest } from "../../src/contracts/chat.js";
import type { HttpError } from "../../src/http/index.js";
import {
  checkBody,
  checkContinued,
  checkGeneration,
  checkMessages,
  checkTokens,
} from "../../src/inference/check-body.js";

/** `field: sentence` of a refusal; "accepted" where there is none. */
function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    const { status, message, param } = error as HttpError;
    assert.is(status, 400);
    return `${param} | ${message}`;
  }
  return "accepted";
}

const Body = Type.Object({
  a: Type.Optional(Type.Integer({ maximum: 9 })),
  any: Type.Optional(Type.Unknown()),
});
const unsupported = { suffix: "use /infill", audio: "there is none", store: "nothing is stored" };
const body = (value: unknown) => refusal(() => checkBody(Body, value, unsupported));

test("a body is an object; null is absent, what is not named is left out, what would change the answer is refused", () => {
  for (const value of [null, [], "x", 5, undefined])
    assert.is(body(value), "null | The body must be a JSON object.");
  assert.equal(checkBody(Body, { a: 3, b: 4, any: null, suffix: null }, unsupported), { a: 3 });
  assert.is(body({ a: 10 }), "a | a: at most 9, got 10.");
  for (const absent of ["", [], undefined, null, false])
    assert.is(body({ audio: absent }), "accepted", JSON.stringify(absent));
  for (const given of ["x", ["x"], {}, 0, true]) {
    assert.is(body({ audio: given }), "audio | audio: not supported; there is none.", JSON.stringify(given));
  }
});

test("a body is 64 levels deep at most, in well-formed Unicode", () => {
  const nested = (depth: number, inner: unknown = 1) => {
    let value: unknown = inner;
    for (let level = 0; level < depth; level++) value = level % 2 ? [value] : { x: value };
    return { any: value };
  };
  // The body itself is above the first level; what is in the innermost one lies a level deeper.
  assert.is(body(nested(63, "x")), "accepted");
  assert.is(body(nested(64, "x")), "null | The body may be nested at most 64 levels deep.");
  const half = "null | The body must be well-formed Unicode; a string contains an unpaired surrogate.";
  for (const any of ["\ud800", ["a", "\udfff"], { "\ud800": 1 }, { a: { b: ["\ud83d"] } }]) {
    assert.is(body({ any }), half, JSON.stringify(any));
  }
  assert.is(body({ any: ["😀", { é: [1, 2] }] }), "accepted");
});

const server = { slots: 4, drafts: false };
const generation = (fields: object, { drafts = false } = {}) =>
  refusal(() => checkGeneration(fields as Parameters<typeof checkGeneration>[0], { ...server, drafts }));

test("formats exclude each other", () => {
  assert.is(
    generation({ grammar: "root ::= x", json_schema: {} }),
    "grammar | grammar and json_schema are mutually exclusive.",
  );
  for (const type of ["json_object", "json_schema"]) {
    const response_format = { type };
    assert.is(
      generation({ grammar: "x", response_format }),
      "grammar | grammar and response_format are mutually exclusive.",
    );
    assert.is(
      generation({ json_schema: {}, response_format }),
      "json_schema | json_schema and response_format are mutually exclusive.",
    );
    assert.is(generation({ response_format }), "accepted");
  }
  assert.is(generation({ grammar: "x", response_format: { type: "text" } }), "accepted");
});

test("grammars that nest too deeply or use another syntax are refused", () => {
  const other = "grammar | grammar: %llguidance grammars are not supported; use GBNF.";
  assert.is(generation({ grammar: " \n%llguidance {}" }), other);
  assert.is(generation({ grammar: "# %llguidance" }), "accepted");
  assert.is(generation({ grammar: "(".repeat(64) }), "accepted");
  assert.is(generation({ grammar: "()".repeat(100) }), "accepted");
  assert.is(
    generation({ grammar: "(".repeat(65) }),
    "grammar | grammar: parentheses may be nested at most 64 deep.",
  );
  const pattern = (length: number) => ({
    type: "object",
    properties: { a: { type: "string", pattern: "x".repeat(length) } },
  });
  for (const [field, wrap] of [
    ["json_schema", (schema: object) => schema],
    ["response_format", (schema: object) => ({ type: "json_schema", json_schema: { schema } })],
    ["tools", (schema: object) => [{ function: { parameters: schema } }]],
  ] as const) {
    assert.is(generation({ [field]: wrap(pattern(1024)) }), "accepted");
    assert.is(
      generation({ [field]: wrap(pattern(1025)) }),
      `${field} | ${field}: a pattern may have at most 1024 characters, got 1025.`,
    );
  }
  assert.is(
    generation({ json_schema: { pattern: { pattern: 5 }, enum: [null, "x".repeat(2000)] } }),
    "accepted",
  );
});

test("answers, slots, probabilities and stops", () => {
  const most = "n | n: at most 4 (the server's slots), got 5.";
  assert.equal(
    [{ n: 4 }, { n_cmpl: 4 }, { n: 5 }, { n_cmpl: 5 }, { n: 1, n_cmpl: 5 }].map((one) => generation(one)),
    ["accepted", "accepted", most, most, most],
  );
  assert.is(generation({ id_slot: 3 }), "accepted");
  assert.is(
    generation({ id_slot: 4 }),
    "id_slot | id_slot: must be from 0 to 3 (the server's slots), got 4.",
  );
  assert.is(generation({ top_logprobs: 0 }), "top_logprobs | top_logprobs needs logprobs: true.");
  assert.is(
    generation({ top_logprobs: 0, logprobs: 1 }),
    "top_logprobs | top_logprobs needs logprobs: true.",
  );
  assert.is(generation({ top_logprobs: 0, logprobs: true }), "accepted");
  const empty = "stop | stop: an empty string would end every answer.";
  assert.equal(
    [{ stop: "" }, { stop: ["a", ""] }, { stop: ["a"] }, { stop: "a" }].map((one) => generation(one)),
    [empty, empty, "accepted", "accepted"],
  );
  const draft = (fields: object) => generation(fields, { drafts: true });
  for (const [fields, field] of [
    [{ logprobs: true }, "logprobs"],
    [{ logprobs: 0 }, "logprobs"],
    [{ n_probs: 1 }, "n_probs"],
    [{ logprobs: false, n_probs: 2 }, "n_probs"],
  ] as const) {
    assert.is(
      draft(fields),
      `${field} | ${field}: not available with a draft model, whose accepted tokens have no probabilities; start the server without --draft.`,
    );
    assert.is(generation(fields), "accepted");
  }
  for (const fields of [{}, { logprobs: false }, { n_probs: 0 }]) assert.is(draft(fields), "accepted");
});

test("messages have content, of text, and of images where the server sees them", () => {
  const messages = (last: object, images?: boolean) =>
    refusal(() => checkMessages([{ role: "user", content: "x" }, last] as ChatRequest["messages"], images));
  const missing = "messages[1].content | messages[1].content is required.";
  assert.is(messages({ role: "user" }), missing);
  assert.is(messages({ role: "assistant" }), missing);
  assert.is(messages({ role: "tool", tool_calls: [] }), missing);
  assert.is(messages({ role: "assistant", tool_calls: [] }), "accepted");
  assert.is(messages({ role: "assistant", content: null }), "accepted");
  const part = (one: object, images?: boolean) =>
    messages({ role: "user", content: [{ type: "text", text: "x" }, one] }, images);
  const at = "messages[1].content[1]";
  assert.is(part({ type: "text", text: "" }), "accepted");
  assert.is(part({ type: "text" }), `${at} | ${at}.text is required.`);
  assert.is(
    part({ type: "x".repeat(70) }),
    `${at} | ${at}: only parts of type text are supported, got ${"x".repeat(60)}.`,
  );
  const image = (url?: string, images = true) =>
    part({ type: "image_url", ...(url && { image_url: { url } }) }, images);
  const good = "data:image/svg+xml;base64,QUJD+/==";
  assert.is(image(good), "accepted");
  assert.is(
    image(good, false),
    `${at} | ${at}: images are not supported; start the server with --mmproj and the model's image encoder.`,
  );
  const fetched = `${at} | ${at}.image_url.url: must be a data:image/…;base64,… URL; other URLs are not fetched.`;
  for (const url of [
    undefined,
    "https://example.org/a.png",
    "data:text/plain;base64,QQ==",
    "data:image/png;base64,",
    `x${good}`,
    `${good}!`,
  ]) {
    assert.is(image(url), fetched, url);
  }
  // What stands behind an image is looked at, too.
  assert.match(
    messages(
      { role: "user", content: [{ type: "image_url", image_url: { url: good } }, { type: "audio" }] },
      true,
    ),
    "got audio",
  );
});

test("an answer that is continued under a format holds no NUL", () => {
  const continued = (more: object, content: unknown = "a\0b", role = "assistant") =>
    refusal(() =>
      checkContinued({
        messages: [
          { role: "user", content: "x" },
          { role, content },
        ],
        ...more,
      } as unknown as ChatRequest),
    );
  const told = (shape: string) =>
    `messages[1].content | messages[1].content: must not contain a NUL character if the answer is continued with ${shape}.`;
  for (const [field, value] of [
    ["grammar", "x"],
    ["json_schema", {}],
    ["response_format", { type: "json_object" }],
    ["tools", [{}]],
  ] as const) {
    assert.is(continued({ [field]: value }), told(field));
    assert.is(continued({ [field]: value }, "ab"), "accepted");
    assert.is(continued({ [field]: value }, "a\0b", "user"), "accepted");
    assert.is(
      continued({ [field]: value }, [
        { type: "text", text: "a" },
        { type: "text", text: "\0" },
      ]),
      told(field),
    );
    assert.is(
      continued({ [field]: value }, [{ type: "text", text: "a" }, { type: "image_url" }]),
      "accepted",
    );
    assert.is(continued({ [field]: value }, null), "accepted");
  }
  for (const none of [{}, { response_format: { type: "text" } }, { tools: [] }])
    assert.is(continued(none), "accepted");
});

test("tokens are the vocabulary's", () => {
  assert.equal(checkTokens({ nVocab: 10 }, [0, 9]), [0, 9]);
  assert.is(
    refusal(() => checkTokens({ nVocab: 10 }, [9, 10, 11])),
    "tokens | tokens: the vocabulary has 10 tokens, got 10.",
  );
});

test.run();
