import Type, { type Static } from "typebox";
import { inferenceLimits as limits } from "./inference-limits.js";
import { LiveRequest } from "./live.js";
import { oneOf, optional, orNull } from "./optional.js";

export const flag = () => optional.Boolean();
export const number = (minimum: number, maximum: number) => optional.Number({ minimum, maximum });
export const integer = (minimum: number, maximum: number) => optional.Integer({ minimum, maximum });
export const maxInt = 2_147_483_647;

const TokenId = Type.Integer({ minimum: 0, maximum: maxInt });
export const Text = Type.String({ maxLength: limits.body_bytes });
export const AnyObject = Type.Record(Type.String(), Type.Unknown());

/** Sampling parameters, with the names and meanings of llama-server and OpenAI. */
export const sampling = {
  temperature: number(0, 100),
  dynatemp_range: number(0, 100),
  dynatemp_exponent: number(0, 100),
  top_k: integer(-1, maxInt),
  top_p: number(0, 1),
  min_p: number(0, 1),
  typical_p: number(0, 1),
  top_n_sigma: number(-1, 1000),
  xtc_probability: number(0, 1),
  xtc_threshold: number(0, 1),
  repeat_last_n: integer(0, limits.penalty_window),
  repeat_penalty: number(0.01, 100),
  presence_penalty: number(-100, 100),
  frequency_penalty: number(-100, 100),
  dry_multiplier: number(0, 100),
  dry_base: number(0, 100),
  dry_allowed_length: integer(0, limits.penalty_window),
  dry_penalty_last_n: integer(0, limits.penalty_window),
  dry_sequence_breakers: optional.Array(Type.String({ minLength: 1, maxLength: 64 }), {
    minItems: 1,
    maxItems: 32,
  }),
  mirostat: integer(0, 2),
  mirostat_tau: number(0, 100),
  mirostat_eta: number(0, 100),
  adaptive_target: number(-1, 1),
  adaptive_decay: number(0, 0.99),
  min_keep: integer(0, limits.penalty_window),
  seed: integer(-1, Number.MAX_SAFE_INTEGER),
  samplers: optional.Union([
    Type.String({ maxLength: 32 }),
    Type.Array(Type.String({ maxLength: 32 }), { maxItems: 32 }),
  ]),
  ignore_eos: flag(),
  logit_bias: optional.Union([
    Type.Record(
      Type.String(),
      Type.Union([Type.Number({ minimum: -1000, maximum: 1000 }), Type.Literal(false)]),
      {
        maxProperties: limits.logit_biases,
      },
    ),
    Type.Array(
      Type.Tuple([
        Type.Union([TokenId, Type.String({ maxLength: 256 })]),
        Type.Union([Type.Number({ minimum: -1000, maximum: 1000 }), Type.Literal(false)]),
      ]),
      { maxItems: limits.logit_biases },
    ),
  ]),
  grammar: optional.String({ maxLength: limits.grammar_characters }),
  json_schema: optional(AnyObject),
  n_probs: integer(0, 100),
  post_sampling_probs: flag(),
};

/** Sampling defaults that a server can be started with. */
export type SamplingDefaults = Partial<
  Record<
    | "temperature"
    | "top_k"
    | "top_p"
    | "min_p"
    | "repeat_penalty"
    | "presence_penalty"
    | "frequency_penalty"
    | "seed",
    number
  >
>;

/** How much is generated, how it is sent, and what stays in the slot's cache. */
export const generation = {
  model: optional.String({ minLength: 1, maxLength: 4096 }),
  max_tokens: integer(-1, maxInt),
  max_completion_tokens: integer(-1, maxInt),
  n_predict: integer(-1, maxInt),
  t_max_predict_ms: integer(-1, maxInt),
  n: integer(1, limits.slots),
  n_cmpl: integer(1, limits.slots),
  stop: optional.Union([
    Type.String({ maxLength: limits.stop_characters }),
    Type.Array(Type.String({ maxLength: limits.stop_characters }), { maxItems: limits.stop_strings }),
  ]),
  stream: flag(),
  stream_options: optional.Object({ include_usage: optional.Boolean() }),
  cache_prompt: flag(),
  return_tokens: flag(),
  return_progress: flag(),
  timings_per_token: flag(),
  n_keep: integer(-1, maxInt),
  n_discard: integer(0, maxInt),
  n_indent: integer(0, 1024),
  n_cache_reuse: integer(0, maxInt),
  id_slot: integer(-1, limits.slots - 1),
};

const ContentPart = Type.Object({
  type: Type.String({ minLength: 1, maxLength: 64 }),
  text: optional(Text),
  image_url: optional.Object({ url: Type.String({ maxLength: limits.body_bytes }) }),
});

const ToolCall = Type.Object({
  id: optional.String({ maxLength: 256 }),
  type: optional(Type.Literal("function")),
  function: Type.Object({
    name: Type.String({ minLength: 1, maxLength: 256 }),
    arguments: optional(Type.Unknown()),
  }),
});

export const ChatMessage = Type.Object({
  role: Type.String({ minLength: 1, maxLength: 64 }),
  content: optional.Union([Text, Type.Array(ContentPart, { maxItems: limits.messages }), Type.Null()]),
  name: optional.String({ maxLength: 256 }),
  reasoning_content: optional(orNull(Text)),
  tool_calls: optional(orNull(Type.Array(ToolCall, { maxItems: limits.tools }))),
  tool_call_id: optional.String({ maxLength: 256 }),
});

const Tool = Type.Object({
  type: Type.Literal("function"),
  function: Type.Object({
    name: Type.String({ minLength: 1, maxLength: 256 }),
    description: optional(Text),
    parameters: optional(AnyObject),
    strict: optional(orNull(Type.Boolean())),
  }),
});

export const template = {
  messages: Type.Array(ChatMessage, { minItems: 1, maxItems: limits.messages }),
  tools: optional.Array(Tool, { maxItems: limits.tools }),
  tool_choice: optional.Union([
    Type.Literal("none"),
    Type.Literal("auto"),
    Type.Literal("required"),
    Type.Object({
      type: Type.Literal("function"),
      function: Type.Object({ name: Type.String({ minLength: 1, maxLength: 256 }) }),
    }),
  ]),
  parallel_tool_calls: flag(),
  chat_template_kwargs: optional(
    Type.Intersect([AnyObject, Type.Object({ enable_thinking: optional.Boolean() })]),
  ),
  add_generation_prompt: flag(),
  continue_final_message: optional.Union([Type.Boolean(), Type.String({ maxLength: 64 })]),
  reasoning_format: optional(oneOf("none", "auto", "deepseek", "deepseek-legacy")),
  reasoning_effort: optional.String({ maxLength: 64 }),
};

/** The body of `POST /v1/chat/completions`. Other fields are ignored. */
export const ChatRequest = Type.Object(
  {
    ...template,
    ...generation,
    ...sampling,
    response_format: optional.Object({
      type: oneOf("text", "json_object", "json_schema"),
      schema: optional(AnyObject),
      json_schema: optional.Object({
        name: optional.String({ maxLength: 256 }),
        schema: optional(AnyObject),
        strict: optional(orNull(Type.Boolean())),
      }),
    }),
    logprobs: flag(),
    top_logprobs: integer(0, limits.top_logprobs),
    reasoning_budget_tokens: integer(-1, maxInt),
    thinking_budget_tokens: integer(-1, maxInt),
    reasoning_budget_message: optional.String({ maxLength: 4096 }),
    tapline: optional(LiveRequest),
  },
  { title: "ChatRequest" },
);
export type ChatRequest = Static<typeof ChatRequest>;

const { tapline: _, ...countedInChat } = ChatRequest.properties;
/** The body of `POST /v1/chat/completions/input_tokens`: counting takes no edits or readings. */
export const ChatCountRequest = Type.Object(countedInChat, { title: "ChatCountRequest" });

/** The body of `POST /apply-template`. */
export const TemplateRequest = Type.Object(template, { title: "TemplateRequest" });
export type TemplateRequest = Static<typeof TemplateRequest>;

const Tokens = Type.Array(TokenId, { minItems: 1, maxItems: limits.prompt_tokens });
/** A text or its tokens, or a list of either. */
const texts = (maxItems: number) =>
  Type.Union([Text, Tokens, Type.Array(Type.Union([Text, Tokens]), { minItems: 1, maxItems })]);

/** The body of `POST /v1/completions`. */
export const CompletionRequest = Type.Object(
  {
    prompt: texts(limits.prompts),
    ...generation,
    ...sampling,
    logprobs: integer(0, limits.top_logprobs),
    echo: flag(),
    best_of: integer(1, limits.slots),
    tapline: optional(LiveRequest),
  },
  { title: "CompletionRequest" },
);
export type CompletionRequest = Static<typeof CompletionRequest>;

/** The body of `POST /completion`: llama-server's format. */
export const NativeCompletionRequest = Type.Object(
  {
    prompt: texts(limits.prompts),
    ...generation,
    ...sampling,
    response_fields: optional.Array(Type.String({ maxLength: 256 }), { maxItems: 64 }),
  },
  { title: "NativeCompletionRequest" },
);
export type NativeCompletionRequest = Static<typeof NativeCompletionRequest>;

/** The body of `POST /infill`: fills in the text between a prefix and a suffix. */
export const InfillRequest = Type.Object(
  {
    input_prefix: Text,
    input_suffix: Text,
    input_extra: optional.Array(Type.Object({ filename: optional.String({ maxLength: 4096 }), text: Text }), {
      maxItems: limits.infill_files,
    }),
    prompt: optional(Text),
    ...generation,
    ...sampling,
    response_fields: optional.Array(Type.String({ maxLength: 256 }), { maxItems: 64 }),
  },
  { title: "InfillRequest" },
);
export type InfillRequest = Static<typeof InfillRequest>;

/** The body of `POST /v1/rerank`. */
export const RerankRequest = Type.Object(
  {
    model: generation.model,
    query: Text,
    documents: Type.Array(Text, { minItems: 1, maxItems: limits.embedding_inputs }),
    top_n: integer(1, maxInt),
  },
  { title: "RerankRequest" },
);
export type RerankRequest = Static<typeof RerankRequest>;

/** The body of `POST /v1/embeddings`. */
export const EmbeddingRequest = Type.Object(
  {
    model: generation.model,
    input: texts(limits.embedding_inputs),
    encoding_format: optional(oneOf("float", "base64")),
    dimensions: integer(1, maxInt),
    embd_normalize: integer(-1, 16),
  },
  { title: "EmbeddingRequest" },
);
export type EmbeddingRequest = Static<typeof EmbeddingRequest>;

/** The body of `POST /tokenize`: llama-server's, or vLLM's, whose text is `prompt`. */
export const TokenizeRequest = Type.Object(
  {
    content: optional(Text),
    add_special: flag(),
    parse_special: flag(),
    with_pieces: flag(),
    model: generation.model,
    prompt: optional(Text),
    add_special_tokens: flag(),
  },
  { title: "TokenizeRequest" },
);

/** The body of `POST /detokenize`. */
export const DetokenizeRequest = Type.Object(
  { tokens: Type.Array(TokenId, { maxItems: limits.prompt_tokens }) },
  { title: "DetokenizeRequest" },
);
