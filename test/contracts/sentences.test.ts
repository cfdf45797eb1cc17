/** The sentence of a refusal, on a separate schema: the limit, the value, and the place. */
import Type from "typebox";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ChatRequest } from "../../src/contracts/chat.js";
import { namePattern } from "../../src/contracts/live-limits.js";
import { InvalidInput, shown, validate } from "../../src/contracts/validate.js";

const Thing = Type.Object(
  {
    name: Type.Optional(Type.String({ pattern: namePattern, minLength: 3, maxLength: 5 })),
    title: Type.Optional(Type.String({ pattern: "\\S", minLength: 1 })),
    count: Type.Optional(Type.Integer({ minimum: 1, maximum: 9, default: 4 })),
    part: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
    kind: Type.Optional(Type.Literal("only")),
    layers: Type.Optional(Type.Array(Type.Integer(), { minItems: 1, maxItems: 2, uniqueItems: true })),
    others: Type.Optional(Type.Array(Type.Integer(), { minItems: 2 })),
    inner: Type.Optional(
      Type.Object(
        { "a/b~c": Type.Integer(), list: Type.Optional(Type.Array(Type.Object({ x: Type.Integer() }))) },
        { additionalProperties: false },
      ),
    ),
    choice: Type.Optional(
      Type.Union([Type.String({ maxLength: 3 }), Type.Array(Type.String()), Type.Null()]),
    ),
    pair: Type.Optional(
      Type.Array(Type.Union([Type.String({ pattern: namePattern }), Type.Integer({ minimum: 0 })])),
    ),
    enumerated: Type.Optional(Type.Enum(["a", "b", "c"])),
    any: Type.Optional(Type.Unknown()),
  },
  { additionalProperties: false },
);
const One = Type.Object({ only: Type.Optional(Type.Integer()) }, { additionalProperties: false });

function refusal(schema: Parameters<typeof validate>[0], value: unknown): [string, string, string] {
  try {
    validate(schema, value);
  } catch (error) {
    assert.instance(error, InvalidInput);
    const { message, path, field } = error as InvalidInput;
    return [message, path, field];
  }
  return ["accepted", "", ""];
}

const cases: [value: object, sentence: string, path: string, field?: string][] = [
  [{ name: "ab" }, "name: at least 3 characters, got 2.", "name"],
  [{ name: "abcdef" }, "name: at most 5 characters, got 6.", "name"],
  [{ name: "😀😀😀😀😀😀" }, "name: at most 5 characters, got 6.", "name"],
  [
    { name: "a b" },
    'name: letters, digits, dots, dashes and underscores, a letter or digit first; got "a b".',
    "name",
  ],
  [{ title: "" }, "title: must not be empty.", "title"],
  [{ title: "  " }, "title: must not be blank.", "title"],
  [{ count: 0 }, "count: at least 1, got 0.", "count"],
  [{ count: 10 }, "count: at most 9, got 10.", "count"],
  [{ count: "3" }, 'count: must be an integer, got "3".', "count"],
  [{ part: 0 }, "part: must be above 0, got 0.", "part"],
  [{ kind: "other" }, 'kind: must be "only", got "other".', "kind"],
  [{ layers: [] }, "layers: at least 1 index, got 0.", "layers"],
  [{ layers: [1, 2, 3] }, "layers: at most 2 indices, got 3.", "layers"],
  [{ layers: [7, 7] }, "layers: 7 appears twice.", "layers"],
  [{ layers: [1, "x"] }, 'layers[1]: must be an integer, got "x".', "layers[1]"],
  [{ others: [1] }, "others: at least 2 entries, got 1.", "others"],
  [{ inner: {} }, "inner: a/b~c is required.", "inner", "inner.a/b~c"],
  [{ inner: { "a/b~c": "x" } }, 'inner.a/b~c: must be an integer, got "x".', "inner.a/b~c"],
  [
    { inner: { "a/b~c": 1, list: [{ x: 1 }, { x: null }] } },
    "inner.list[1].x: must be an integer, got null.",
    "inner.list[1].x",
  ],
  [{ inner: { "a/b~c": 1, more: 2 } }, 'inner: unknown field "more".', "inner", "inner.more"],
  [{ choice: 5 }, "choice: must be a string, an array or null, got 5.", "choice"],
  [{ choice: "long" }, "choice: at most 3 characters, got 4.", "choice"],
  [{ choice: ["a", 1] }, "choice[1]: must be a string, got 1.", "choice[1]"],
  // For a text that isn't a name, the sentence explains names, not numbers.
  [
    { pair: ["a b"] },
    'pair[0]: letters, digits, dots, dashes and underscores, a letter or digit first; got "a b".',
    "pair[0]",
  ],
  [{ pair: ["a", -1] }, "pair[1]: at least 0, got -1.", "pair[1]"],
  [{ pair: [null] }, "pair[0]: must be a string or an integer, got null.", "pair[0]"],
  [{ enumerated: "d" }, 'enumerated: must be a, b or c, got "d".', "enumerated"],
  [{ count: [1] }, "count: must be an integer, got an array.", "count"],
  [{ count: {} }, "count: must be an integer, got an object.", "count"],
  // Missing fields are reported before excess, and excess before wrong values.
  [{ count: 0, bogus: 1 }, 'unknown field "bogus"; accepted are', "", "bogus"],
  [{ bogus: 1, inner: {} }, "inner: a/b~c is required.", "inner", "inner.a/b~c"],
  [
    { any: { deep: ["\ud800"] } },
    "any.deep[0]: must be well-formed Unicode; it contains an unpaired surrogate.",
    "any.deep[0]",
  ],
  [
    { any: [1, [2, 3], [4, ["ok", "\ud800"]]] },
    "any[2][1][1]: must be well-formed Unicode; it contains an unpaired surrogate.",
    "any[2][1][1]",
  ],
  [
    { any: { "odd key": "\udfff" } },
    'any."odd key": must be well-formed Unicode; it contains an unpaired surrogate.',
    'any."odd key"',
  ],
];

for (const [value, sentence, path, field = path] of cases) {
  test(`${JSON.stringify(value)}: ${sentence}`, () => {
    const [message, ...places] = refusal(Thing, value);
    assert.ok(message === sentence || (sentence.endsWith("are") && message.startsWith(sentence)), message);
    assert.equal(places, [path, field]);
  });
}

test("accepted values are listed; several absent fields make one sentence", () => {
  assert.is(refusal(One, { more: 1 })[0], 'unknown field "more"; accepted is only.');
  assert.match(refusal(Thing, { more: 1 })[0], "accepted are name, title, count,");
  assert.match(refusal(Thing, { more: 1 })[0], "enumerated and any.");
  const Two = Type.Object({ a: Type.Integer(), b: Type.Integer() });
  assert.is(refusal(Two, {})[0], "a and b are required.");
  assert.is(refusal(Two, { a: 1 })[0], "b is required.");
  assert.is(refusal(Type.String(), "\ud800")[1], "body");
});

test("defaults are filled in, in the schema's order, and belong to the answer", () => {
  const given = { kind: "only", name: "abc" };
  const filled = validate(Thing, given) as Record<string, unknown>;
  assert.equal(Object.keys(filled), ["name", "count", "kind"]);
  assert.is(filled.count, 4);
  assert.equal(Object.keys(given), ["kind", "name"]);
  assert.is(validate(Type.Integer(), 3), 3);
});

test("a value is named by at most 60 characters", () => {
  assert.is(shown("x".repeat(58)), `"${"x".repeat(58)}"`);
  assert.is(shown("x".repeat(59)), `"${"x".repeat(56)}...`);
  assert.equal(
    [shown(undefined), shown(Number.POSITIVE_INFINITY), shown([]), shown({}), shown(null)],
    ["nothing", "Infinity", "an array", "an object", "null"],
  );
});

/** Where a field takes one of several things, a refusal names all of them, and the field itself. */
const unions: Array<[fields: object, sentence: string, field: string]> = [
  [{ stop: 5 }, "stop: must be a string or an array, got 5.", "stop"],
  [{ stop: ["a", 1] }, "stop[1]: must be a string, got 1.", "stop[1]"],
  [
    { tool_choice: "maybe" },
    'tool_choice: must be "none", "auto", "required" or an object, got "maybe".',
    "tool_choice",
  ],
  [
    { response_format: { type: "yaml" } },
    'response_format.type: must be "text", "json_object" or "json_schema", got "yaml".',
    "response_format.type",
  ],
  [{ logit_bias: "x" }, 'logit_bias: must be an object or an array, got "x".', "logit_bias"],
  [{ logit_bias: [[1, true]] }, "logit_bias[0][1]: must be a number or false, got true.", "logit_bias[0][1]"],
  [
    { messages: [{ role: "user", content: 5 }] },
    "messages[0].content: must be a string, an array or null, got 5.",
    "messages[0].content",
  ],
  [{ temperature: "hot" }, 'temperature: must be a number, got "hot".', "temperature"],
  [{ messages: undefined }, "messages is required.", "messages"],
  [{ messages: [{ content: "x" }] }, "messages[0]: role is required.", "messages[0].role"],
];

for (const [fields, sentence, field] of unions) {
  test(sentence, () => {
    const body = { messages: [{ role: "user", content: "x" }], ...fields };
    if ("messages" in fields && fields.messages === undefined)
      delete (body as { messages?: unknown }).messages;
    try {
      validate(ChatRequest, body);
    } catch (error) {
      assert.instance(error, InvalidInput);
      assert.equal([(error as InvalidInput).message, (error as InvalidInput).field], [sentence, field]);
      return;
    }
    assert.unreachable("accepted");
  });
}

test("half of a pair is found nine levels down, and not looked for beyond", () => {
  const within = (levels: number): unknown => (levels === 0 ? "\ud800" : { x: within(levels - 1) });
  const [sentence] = refusal(Thing, { any: within(8) });
  assert.is(
    sentence,
    `any${".x".repeat(8)}: must be well-formed Unicode; it contains an unpaired surrogate.`,
  );
  assert.is(refusal(Thing, { any: within(9) })[0], "accepted");
});

test.run();
