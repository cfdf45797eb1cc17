import Type, { type Static } from "typebox";
import { AnyObject, flag, generation, integer, maxInt, number, sampling, Text, template } from "./chat.js";
import { inferenceLimits as limits } from "./inference-limits.js";
import { LiveRequest } from "./live.js";
import { oneOf, optional, orNull } from "./optional.js";

const Name = Type.String({ minLength: 1, maxLength: 256 });
const ItemId = Type.String({ maxLength: 256 });
const optionalOrNull = <S extends Type.TSchema>(schema: S) => optional(orNull(schema));

/** A part of a message or of a tool's output, depending on `type`. */
const Part = Type.Object({
  type: Type.String({ minLength: 1, maxLength: 64 }),
  text: optional(Text),
  refusal: optional(Text),
  image_url: optionalOrNull(Type.String({ maxLength: limits.body_bytes })),
});
const Parts = Type.Union([Text, Type.Array(Part, { maxItems: limits.messages })]);

/** An item of a conversation: a message, a tool call, its output, or reasoning. */
export const ResponsesItem = Type.Object({
  type: optional.String({ minLength: 1, maxLength: 64 }),
  id: optionalOrNull(ItemId),
  role: optional(oneOf("user", "assistant", "system", "developer")),
  content: optionalOrNull(Parts),
  call_id: optional(ItemId),
  name: optional(Name),
  arguments: optional(Text),
  output: optional(Parts),
  summary: optional.Array(Part, { maxItems: limits.messages }),
});
export type ResponsesItem = Static<typeof ResponsesItem>;

const ResponsesTool = Type.Object({
  type: Type.String({ minLength: 1, maxLength: 64 }),
  name: optional(Name),
  description: optionalOrNull(Text),
  parameters: optionalOrNull(AnyObject),
  strict: optionalOrNull(Type.Boolean()),
});

/** The body of `POST /v1/responses`. */
export const ResponsesRequest = Type.Object(
  {
    model: generation.model,
    input: Type.Union([Text, Type.Array(ResponsesItem, { minItems: 1, maxItems: limits.messages })]),
    instructions: optional(Text),
    max_output_tokens: integer(1, maxInt),
    stream: flag(),
    tools: optional.Array(ResponsesTool, { maxItems: limits.tools }),
    tool_choice: optional.Union([
      Type.Literal("none"),
      Type.Literal("auto"),
      Type.Literal("required"),
      Type.Object({ type: Type.Literal("function"), name: Name }),
    ]),
    parallel_tool_calls: flag(),
    text: optional.Object({
      format: optionalOrNull(
        Type.Object({
          type: oneOf("text", "json_object", "json_schema"),
          name: optional(Name),
          schema: optional(AnyObject),
          strict: optionalOrNull(Type.Boolean()),
        }),
      ),
    }),
    reasoning: optional.Object({ effort: optionalOrNull(Type.String({ maxLength: 64 })) }),
    truncation: optional.Enum(["disabled", "auto"], {
      description: "Inputs that do not fit are refused either way; nothing is dropped silently.",
    }),
    include: optional.Array(Type.String({ maxLength: 128 }), { maxItems: 32 }),
    top_logprobs: integer(0, limits.top_logprobs),
    metadata: optional(AnyObject),
    store: flag(),
    temperature: sampling.temperature,
    top_p: sampling.top_p,
    top_k: sampling.top_k,
    min_p: number(0, 1),
    seed: sampling.seed,
    presence_penalty: sampling.presence_penalty,
    frequency_penalty: sampling.frequency_penalty,
    logit_bias: sampling.logit_bias,
    chat_template_kwargs: template.chat_template_kwargs,
    tapline: optional(LiveRequest),
  },
  { title: "ResponsesRequest" },
);
export type ResponsesRequest = Static<typeof ResponsesRequest>;

const { tapline: _, ...countedInResponses } = ResponsesRequest.properties;
/** The body of `POST /v1/responses/input_tokens`: counting takes no edits or readings. */
export const ResponsesCountRequest = Type.Object(countedInResponses, { title: "ResponsesCountRequest" });
