import Type, { type Static } from "typebox";
import { AnyObject, flag, generation, integer, maxInt, sampling, Text, template } from "./chat.js";
import { inferenceLimits as limits } from "./inference-limits.js";
import { LiveRequest } from "./live.js";
import { oneOf, optional, orNull } from "./optional.js";

const Name = Type.String({ minLength: 1, maxLength: 256 });

const Source = Type.Object({
  type: oneOf("base64", "url"),
  media_type: optional.String({ maxLength: 128 }),
  data: optional(Text),
  url: optional(Text),
});

const ResultBlock = Type.Object({
  type: oneOf("text", "image"),
  text: optional(Text),
  source: optional(Source),
});

/** One block of a message; `type` determines which other fields apply. */
const Block = Type.Object({
  type: oneOf("text", "image", "thinking", "tool_use", "tool_result"),
  text: optional(Text),
  thinking: optional(Text),
  source: optional(Source),
  id: optional(Name),
  name: optional(Name),
  input: optional(Type.Unknown()),
  tool_use_id: optional(Name),
  content: optional.Union([Text, Type.Array(ResultBlock, { maxItems: limits.messages })]),
});

const MessagesTool = Type.Object({
  type: optional(orNull(Type.Literal("custom"))),
  name: Name,
  description: optional(Text),
  input_schema: AnyObject,
});

const prompt = {
  model: generation.model,
  messages: Type.Array(
    Type.Object({
      role: oneOf("user", "assistant", "system"),
      content: Type.Union([Text, Type.Array(Block, { maxItems: limits.messages })]),
    }),
    { minItems: 1, maxItems: limits.messages },
  ),
  system: optional.Union([
    Text,
    Type.Array(Type.Object({ type: Type.Literal("text"), text: Text }), { maxItems: limits.messages }),
  ]),
  tools: optional.Array(MessagesTool, { maxItems: limits.tools }),
  tool_choice: optional.Object({
    type: oneOf("auto", "any", "tool", "none"),
    name: optional(Name),
    disable_parallel_tool_use: flag(),
  }),
  thinking: optional.Object({
    type: oneOf("enabled", "disabled", "adaptive"),
    budget_tokens: integer(0, maxInt),
  }),
  output_config: optional.Object({
    effort: optional(orNull(Type.String({ maxLength: 64 }))),
    format: optional(orNull(Type.Object({ type: Type.Literal("json_schema"), schema: AnyObject }))),
  }),
  chat_template_kwargs: template.chat_template_kwargs,
};

/** The body of `POST /v1/messages/count_tokens`. */
export const CountRequest = Type.Object(prompt, { title: "MessagesCountRequest" });
export type CountRequest = Static<typeof CountRequest>;

/** The body of `POST /v1/messages`. */
export const MessagesRequest = Type.Object(
  {
    ...prompt,
    max_tokens: Type.Integer({ minimum: 1, maximum: maxInt }),
    stream: flag(),
    stop_sequences: optional.Array(Type.String({ minLength: 1, maxLength: limits.stop_characters }), {
      maxItems: limits.stop_strings,
    }),
    temperature: sampling.temperature,
    top_p: sampling.top_p,
    top_k: sampling.top_k,
    seed: sampling.seed,
    logit_bias: sampling.logit_bias,
    tapline: optional(LiveRequest),
  },
  { title: "MessagesRequest" },
);
export type MessagesRequest = Static<typeof MessagesRequest>;
