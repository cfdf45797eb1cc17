import Type, { type Static } from "typebox";
import { AnyObject, flag, generation, integer, maxInt, number, sampling, Text, template } from "./chat.js";
import { inferenceLimits as limits } from "./inference-limits.js";
import { LiveRequest } from "./live.js";
import { optional } from "./optional.js";

const Name = Type.String({ minLength: 1, maxLength: 256 });
const ItemId = Type.String({ maxLength: 256 });
const orNull = <S extends Type.TSchema>(schema: S) => optional(Type.Union([schema, Type.Null()]));

/** A part of a message or of a tool's output, depending on `type`. */
const Part = Type.Object({
  type: Type.String({ minLength: 1, maxLength: 64 }),
  text: optional(Text),
  refusal: optional(Text),
  image_url: orNull(Type.String({ maxLength: limits.body_bytes })),
});
const Parts = Type.Union([Text, Type.Array(Part, { maxItems: limits.messages })]);

/** An item of a conversation: a message, a tool call, its output, or reasoning. */
export const ResponsesItem = Type.Object({
  type: optional(Type.String({ minLength: 1, maxLength: 64 })),
  id: orNull(ItemId),
  role: optional.Union([
    Type.Literal("user"),
    Type.Literal("assistant"),
    Type.Literal("system"),
    Type.Literal("developer"),
  ]),
  content: orNull(Parts),
  call_id: optional(ItemId),
  name: optional(Name),
  arguments: optional(Text),
  output: optional(Parts),
  summary: optional(Type.Array(Part, { maxItems: limits.messages })),
});
export type ResponsesItem = Static<typeof ResponsesItem>;

const ResponsesTool = Type.Object({
  type: Type.String({ minLength: 1, maxLength: 64 }),
  name: optional(Name),
  description: orNull(Text),
  parameters: orNull(AnyObject),
  strict: orNull(Type.Boolean()),
});

/** The body of `POST /v1/responses`. */
export const ResponsesRequest = Type.Object(
  {
    model: generation.model,
    input: Type.Union([Text, Type.Array(ResponsesItem, { minItems: 1, maxItems: limits.messages })]),
    instructions: optional(Text),
    max_output_tokens: integer(1, maxInt),
    stream: flag(),
    tools: optional(Type.Array(ResponsesTool, { maxItems: limits.tools })),
    tool_choice: optional.Union([
      Type.Literal("none"),
      Type.Literal("auto"),
      Type.Literal("required"),
      Type.Object({ type: Type.Literal("function"), name: Name }),
    ]),
    parallel_tool_calls: flag(),
    text: optional.Object({
      format: orNull(
        Type.Object({
          type: Type.Union([Type.Literal("text"), Type.Literal("json_object"), Type.Literal("json_schema")]),
          name: optional(Name),
          schema: optional(AnyObject),
          strict: orNull(Type.Boolean()),
        }),
      ),
    }),
    reasoning: optional(Type.Object({ effort: orNull(Type.String({ maxLength: 64 })) })),
    truncation: optional.Enum(["disabled", "auto"], {
      description: "Inputs that do not fit are refused either way; nothing is dropped silently.",
    }),
    include: optional(Type.Array(Type.String({ maxLength: 128 }), { maxItems: 32 })),
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
