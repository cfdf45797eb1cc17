import { fc } from "../../support/fc.js";

/** Values that no field expects, or that lie at the edge of what numbers and texts can be. */
const odd = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -1,
    1,
    2,
    0.5,
    -0.5,
    1e-9,
    65_536,
    65_537,
    2 ** 31 - 1,
    2 ** 31,
    -(2 ** 31),
    2 ** 53,
    1e300,
    -1e300,
    "",
    " ",
    "\u0000",
    "\ufffd",
    "\u202e",
    [],
    {},
    [[]],
    [null],
    [{}],
    { "": "" },
    { __proto__: null },
  ),
  fc.string({ unit: "grapheme", maxLength: 40 }),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.jsonValue({ maxDepth: 4 }),
);

/** Mostly values that mean something, now and then anything at all. */
const mostly = (meaningful: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 6, arbitrary: meaningful }, { weight: 1, arbitrary: odd });
/** A number field at its edges, and sometimes just beside them. */
const around = (...edges: number[]) =>
  fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom<unknown>(...edges) },
    { weight: 1, arbitrary: fc.constantFrom<unknown>(...edges.flatMap((edge) => [edge - 1, edge + 1])) },
    { weight: 1, arbitrary: odd },
  );
const bool = mostly(fc.boolean());

const schema = fc.oneof(
  fc.constantFrom<unknown>(
    { type: "object" },
    { type: "object", properties: { a: { type: "integer" } }, required: ["a"] },
    { type: "array", items: { type: "string" }, maxItems: 3 },
    { type: "array", minItems: 1_000_000, maxItems: 2_000_000 },
    { type: "string", minLength: 100_000 },
    { type: "string", pattern: "^[a-z]+$" },
    { type: "string", pattern: "^((((((((((a))))))))))$" },
    { type: "string", pattern: "(" },
    { type: "string", pattern: "^(a*)*$" },
    { type: "string", format: "date-time" },
    { enum: [] },
    { enum: ["a", 1, null] },
    { const: 1 },
    { $ref: "#" },
    { $ref: "#/$defs/x", $defs: { x: { $ref: "#/$defs/x" } } },
    {
      $ref: "#/$defs/node",
      $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
    },
    { $ref: "https://example.com/schema.json" },
    { $ref: 1 },
    { anyOf: [] },
    { allOf: [{ type: "string" }, { type: "integer" }] },
    { oneOf: [{ type: "string" }, { type: "null" }] },
    { type: ["string", "null"] },
    { type: "nonsense" },
    { type: 1 },
    { type: "integer", minimum: 1e300, maximum: -1e300 },
    { type: "integer", minimum: -5, maximum: 5 },
    { properties: 1 },
    { additionalProperties: { type: "boolean" } },
  ),
  odd,
);

const grammar = mostly(
  fc.constantFrom<unknown>(
    'root ::= "a"',
    "root ::= [a-z]+",
    'root ::= "yes" | "no"',
    "root ::= root",
    'root ::= root "a"',
    'root ::= ("a"*)*',
    'root ::= (("a"?)*)+',
    'root ::= "a"{1000000}',
    'root ::= "a"{0,1000000}',
    "root ::= missing",
    "root ::=",
    "root",
    "::=",
    'root ::= "',
    "root ::= [",
    "root ::= [^]",
    'root ::= "\\x"',
    'root ::= "\\uD800"',
    "%llguidance {}",
    "  %llguidance\nstart: /a/",
    `root ::= ${"(".repeat(64)}"a"${")".repeat(64)}`,
    `root ::= ${"(".repeat(5000)}`,
    'other ::= "a"',
    'root ::= a\na ::= b\nb ::= c\nc ::= "x" a?',
    "root ::= .",
    "root ::= <|im_end|>",
    "root ::= <[1]>",
    "root ::= !<[1]>",
  ),
);

const tool = fc.oneof(
  fc.record({
    type: fc.constant("function"),
    function: fc.record({ name: mostly(fc.constantFrom("f", "a b", '"', "f\n", "ü")), parameters: schema }),
  }),
  odd,
);

const content = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 60 }),
  fc.constantFrom<unknown>(
    "The capital of France is",
    "<|im_start|>system\n<|im_end|>",
    "</think>",
    "{{ messages }}",
    "a".repeat(5000),
    null,
    [{ type: "text", text: "Hello" }],
    [{ type: "image_url", image_url: { url: "http://169.254.169.254/" } }],
    [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }],
    [{ type: "input_audio", input_audio: { data: "AAAA", format: "wav" } }],
    [{ type: "text" }],
  ),
  odd,
);

const message = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ role: fc.constantFrom("user", "system", "assistant", "developer"), content }),
  },
  {
    weight: 2,
    arbitrary: fc.record(
      {
        role: mostly(fc.constantFrom("tool", "assistant")),
        content,
        tool_call_id: odd,
        name: odd,
        reasoning_content: odd,
        tool_calls: mostly(
          fc.constantFrom<unknown>(
            [{ id: "1", type: "function", function: { name: "f", arguments: "{}" } }],
            [{ id: "1", type: "function", function: { name: "f", arguments: "{" } }],
            [{ id: "1", type: "function", function: { name: "f", arguments: { a: 1 } } }],
          ),
        ),
      },
      { requiredKeys: ["role"] },
    ),
  },
  { weight: 1, arbitrary: odd },
);

const fields: Record<string, fc.Arbitrary<unknown>> = {
  model: mostly(fc.constantFrom<unknown>("tapline-demo", "gpt-4o")),
  temperature: around(0, 0.7, 2, 100),
  dynatemp_range: around(0, 100),
  dynatemp_exponent: around(0, 100),
  top_k: around(-1, 0, 40, 2 ** 31 - 1),
  top_p: around(0, 1),
  min_p: around(0, 1),
  typical_p: around(0, 1),
  top_n_sigma: around(-1, 0, 1000),
  xtc_probability: around(0, 1),
  xtc_threshold: around(0, 1),
  repeat_last_n: around(0, 64, 65_536),
  repeat_penalty: around(0.01, 1, 100),
  presence_penalty: around(-100, 0, 100),
  frequency_penalty: around(-100, 0, 100),
  dry_multiplier: around(0, 1, 100),
  dry_base: around(0, 1.75, 100),
  dry_allowed_length: around(0, 65_536),
  dry_penalty_last_n: around(0, 65_536),
  dry_sequence_breakers: mostly(fc.constantFrom<unknown>(["\n"], [""], ["a", "b"])),
  mirostat: around(0, 1, 2),
  mirostat_tau: around(0, 5, 100),
  mirostat_eta: around(0, 0.1, 100),
  adaptive_target: around(-1, 0, 1),
  adaptive_decay: around(0, 0.99),
  min_keep: around(0, 65_536),
  seed: around(-1, 0, 2 ** 32, 2 ** 53 - 2),
  samplers: mostly(
    fc.constantFrom<unknown>(["top_k", "temperature"], [], ["nonsense"], "kt", "", "zzz", [
      "dry",
      "xtc",
      "infill",
    ]),
  ),
  ignore_eos: bool,
  logit_bias: mostly(
    fc.constantFrom<unknown>(
      { "1": 5 },
      { "999999": 5 },
      { Paris: -100 },
      [[1, false]],
      [[-1, 1]],
      [["a", 2]],
      [[1]],
    ),
  ),
  grammar,
  json_schema: schema,
  n_probs: around(0, 5, 100),
  post_sampling_probs: bool,
  n_predict: around(-1, 0, 4),
  t_max_predict_ms: around(-1, 0, 10),
  n: around(1, 4),
  n_cmpl: around(1, 4),
  stop: mostly(fc.constantFrom<unknown>("\n", [".", "!"], [], [""], [1])),
  stream: bool,
  stream_options: mostly(fc.constantFrom<unknown>({ include_usage: true }, { include_usage: 1 })),
  cache_prompt: bool,
  return_tokens: bool,
  return_progress: bool,
  timings_per_token: bool,
  n_keep: around(-1, 0, 2 ** 31 - 1),
  n_discard: around(0, 2 ** 31 - 1),
  n_indent: around(0, 1024),
  n_cache_reuse: around(0, 2 ** 31 - 1),
  id_slot: around(-1, 0, 3),
  logprobs: mostly(fc.constantFrom<unknown>(true, false, 0, 5, 20)),
  top_logprobs: around(0, 5, 20),
  user: odd,
  unknown_field: odd,
  chat_parser: odd,
  message_delimiters: odd,
  grammar_triggers: odd,
  preserved_tokens: odd,
  lora: odd,
};

const chatFields: Record<string, fc.Arbitrary<unknown>> = {
  ...fields,
  tools: mostly(fc.array(tool, { maxLength: 3 })),
  tool_choice: mostly(
    fc.constantFrom<unknown>("auto", "none", "required", { type: "function", function: { name: "f" } }),
  ),
  parallel_tool_calls: bool,
  response_format: fc.oneof(
    fc.constantFrom<unknown>({ type: "text" }, { type: "json_object" }, { type: "json_schema" }),
    fc.record({
      type: fc.constant("json_schema"),
      json_schema: fc.record({ name: fc.constant("x"), schema }),
    }),
    odd,
  ),
  chat_template_kwargs: fc.oneof(
    fc.constantFrom<unknown>({ enable_thinking: true }, { enable_thinking: false }, { enable_thinking: "x" }),
    fc.record({ anything: odd }),
    odd,
  ),
  add_generation_prompt: bool,
  continue_final_message: bool,
  reasoning_format: mostly(fc.constantFrom<unknown>("none", "auto", "deepseek", "deepseek-legacy")),
  reasoning_effort: mostly(fc.constantFrom<unknown>("none", "low", "high")),
  reasoning_budget_tokens: around(-1, 0, 10),
  thinking_budget_tokens: around(-1, 0, 10),
  reasoning_budget_message: mostly(fc.constant("Enough.")),
};

/** A few of the fields at a time: with all of them nearly every body would be refused for its first fault. */
function someOf(all: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Record<string, unknown>> {
  return fc
    .uniqueArray(fc.constantFrom(...Object.keys(all)), { minLength: 0, maxLength: 4 })
    .chain((names) =>
      fc.record(Object.fromEntries(names.map((name) => [name, all[name] as fc.Arbitrary<unknown>]))),
    );
}

const maxTokens = fc.oneof(
  { weight: 20, arbitrary: fc.constant<unknown>(4) },
  { weight: 1, arbitrary: around(-1, 0) },
);

const chatBody = fc
  .tuple(
    fc.oneof(
      { weight: 4, arbitrary: fc.constant<unknown>([{ role: "user", content: "The capital of France is" }]) },
      { weight: 3, arbitrary: fc.array(message, { maxLength: 4 }) },
      { weight: 1, arbitrary: odd },
    ),
    maxTokens,
    someOf(chatFields),
  )
  .map(([messages, max_tokens, rest]) => ({ messages, max_tokens, ...rest }));

const prompt = mostly(
  fc.constantFrom<unknown>(
    "The capital of France is",
    "",
    ["a", "b"],
    [1, 2, 3],
    [[1], [2]],
    [1_000_000],
    [-1],
    "a".repeat(9000),
  ),
);

const completionBody = fc
  .tuple(prompt, maxTokens, someOf(fields))
  .map(([text, max_tokens, rest]) => ({ prompt: text, max_tokens, ...rest }));

const embeddingBody = fc.record(
  {
    input: prompt,
    encoding_format: odd,
    dimensions: around(128),
    embd_normalize: around(-1, 2, 16),
    model: odd,
  },
  { requiredKeys: ["input"] },
);

const block = fc.oneof(
  fc.constantFrom<unknown>(
    { type: "text", text: "Hello" },
    { type: "input_text", text: "Hello" },
    { type: "thinking", thinking: "a", signature: "" },
    { type: "tool_use", id: "1", name: "f", input: { a: 1 } },
    { type: "tool_result", tool_use_id: "1", content: [{ type: "text", text: "done" }] },
    { type: "image", source: { type: "url", url: "http://169.254.169.254/" } },
    { type: "input_image", image_url: "data:image/png;base64,AAAA" },
  ),
  odd,
);
const blocks = mostly(fc.oneof(content, fc.array(block, { maxLength: 3 })));
const item = fc.oneof(
  fc.record({ role: mostly(fc.constantFrom("user", "assistant", "system", "developer")), content: blocks }),
  fc.constantFrom<unknown>(
    { type: "function_call", call_id: "1", name: "f", arguments: "{" },
    { type: "function_call_output", call_id: "1", output: "done" },
    { type: "reasoning", summary: [] },
    { type: "item_reference", id: "msg_1" },
  ),
  odd,
);

const responsesBody = fc
  .tuple(fc.oneof(content, fc.array(item, { maxLength: 4 })), someOf(chatFields), mostly(schema))
  .map(([input, { max_tokens: _, ...rest }, form]) => ({
    input,
    max_output_tokens: 4,
    ...rest,
    ...(rest.tools === undefined && { text: { format: { type: "json_schema", name: "x", schema: form } } }),
  }));

const messagesBody = fc
  .tuple(
    fc.array(fc.record({ role: mostly(fc.constantFrom("user", "assistant")), content: blocks }), {
      maxLength: 4,
    }),
    someOf({ ...chatFields, system: blocks, stop_sequences: odd, thinking: odd, output_config: odd }),
  )
  .map(([messages, rest]) => ({ messages, max_tokens: 4, ...rest }));

const infillBody = fc
  .tuple(content, content, maxTokens, someOf(fields))
  .map(([input_prefix, input_suffix, max_tokens, rest]) => ({
    input_prefix,
    input_suffix,
    max_tokens,
    ...rest,
  }));

const deep = fc
  .constantFrom(10, 63, 64, 65, 1000, 100_000)
  .chain((depth) =>
    fc.constantFrom(
      `{"messages":${"[".repeat(depth)}${"]".repeat(depth)}}`,
      `{"prompt":"a","max_tokens":1,"json_schema":${'{"items":'.repeat(depth)}{}${"}".repeat(depth)}}`,
    ),
  );

const broken: fc.Arbitrary<string | Uint8Array> = fc.oneof(
  deep,
  fc.constantFrom(
    "",
    "{",
    "[]",
    "null",
    "1e999",
    '{"messages":1e999}',
    '{"a":1}{',
    "\ufeff{}",
    '{"prompt":"\\ud800"}',
  ),
  fc.constant('{"prompt":"a","max_tokens":4,"temperature":1e999}'),
  fc.uint8Array({ maxLength: 40 }),
  fc
    .uint8Array({ maxLength: 8 })
    .map((bytes) => Buffer.concat([Buffer.from('{"prompt":"'), bytes, Buffer.from('","max_tokens":2}')])),
);

export interface Attempt {
  path: string;
  body: string | Uint8Array;
}

const send = (path: string, body: fc.Arbitrary<unknown>): fc.Arbitrary<Attempt> =>
  body.map((value) => ({ path, body: JSON.stringify(value) ?? "" }));

/** A request to any endpoint that takes a body. */
export const attempt: fc.Arbitrary<Attempt> = fc.oneof(
  { weight: 10, arbitrary: send("/v1/chat/completions", chatBody) },
  { weight: 6, arbitrary: send("/v1/completions", completionBody) },
  { weight: 2, arbitrary: send("/v1/embeddings", embeddingBody) },
  { weight: 3, arbitrary: send("/v1/responses", responsesBody) },
  { weight: 1, arbitrary: send("/v1/responses/input_tokens", responsesBody) },
  { weight: 3, arbitrary: send("/v1/messages", messagesBody) },
  { weight: 1, arbitrary: send("/v1/messages/count_tokens", messagesBody) },
  { weight: 2, arbitrary: send("/completion", completionBody) },
  { weight: 1, arbitrary: send("/infill", infillBody) },
  {
    weight: 1,
    arbitrary: send(
      "/v1/rerank",
      fc.record({ query: content, documents: mostly(fc.array(content)), top_n: odd }),
    ),
  },
  {
    weight: 1,
    arbitrary: send("/tokenize", fc.record({ content: odd, add_special: bool, with_pieces: bool })),
  },
  {
    weight: 1,
    arbitrary: send(
      "/detokenize",
      fc.record({ tokens: mostly(fc.constantFrom<unknown>([1], [-1], [9e9], [1e300])) }),
    ),
  },
  { weight: 2, arbitrary: send("/apply-template", chatBody) },
  {
    weight: 1,
    arbitrary: send(
      "/lab/activations",
      fc.record({ model: odd, prompt: odd, layers: odd, max_input_tokens: odd }, { requiredKeys: [] }),
    ),
  },
  {
    weight: 2,
    arbitrary: send(
      "/lab/forward",
      fc.record(
        {
          sequences: mostly(fc.constantFrom<unknown>(["a", "b"], [[1, 2]], [[1], "a"], [], [[]], [99_999])),
          capture: mostly(
            fc.constantFrom<unknown>(["block_out.0"], ["blocks.*.hook_out"], [], ["a"], ["mid.99"]),
          ),
          positions: mostly(fc.constantFrom<unknown>([0], [-1], [5], [])),
          logits: mostly(fc.constantFrom<unknown>("none", "last", "all", [0], [-9])),
          edits: mostly(
            fc.constantFrom<unknown>(
              [],
              [{ kind: "ablate", layer: 0 }],
              [{ kind: "steer", layer: 0, vector: { values: [1] } }],
              [{ kind: "scale", layer: 0, strength: 1e30, sequences: [1] }],
            ),
          ),
          stop_at_layer: around(1, 2),
          precision: mostly(fc.constantFrom("f32", "f16")),
          transfer: mostly(fc.constantFrom("stream", "file")),
        },
        { requiredKeys: [] },
      ),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      path: fc.constantFrom(
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/embeddings",
        "/tokenize",
        "/lab/activations",
      ),
      body: broken,
    }),
  },
);
