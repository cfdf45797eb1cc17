import type { ChatRequest } from "../../contracts/chat.js";
import type { CountRequest, MessagesRequest } from "../../contracts/messages.js";
import { refusal } from "../check-body.js";

type Message = ChatRequest["messages"][number];
type Part = Extract<NonNullable<Message["content"]>, unknown[]>[number];
type Blocks = Extract<CountRequest["messages"][number]["content"], unknown[]>;
type Source = Blocks[number]["source"];

/** Converts a body of `/v1/messages` to a chat. @throws HttpError 400 for blocks that lack required fields */
export function chatOfMessages(body: MessagesRequest): ChatRequest {
  const { max_tokens, stream, stop_sequences, temperature, top_p, top_k, seed, logit_bias, tapline } = body;
  const passed = { max_tokens, stream, temperature, top_p, top_k, seed, logit_bias, tapline };
  return {
    ...chatOfCount(body),
    ...(Object.fromEntries(
      Object.entries(passed).filter(([, value]) => value !== undefined),
    ) as typeof passed),
    ...(stop_sequences !== undefined && { stop: stop_sequences }),
  } as ChatRequest;
}

/** The same for `/v1/messages/count_tokens`, with only the fields that affect the prompt. */
export function chatOfCount(body: CountRequest): ChatRequest {
  const { system, tools, tool_choice: choice, thinking, output_config: output } = body;
  const messages: Message[] = [];
  if (system !== undefined) {
    const content = typeof system === "string" ? system : system.map(({ text }) => text).join("");
    messages.push({ role: "system", content });
  }
  for (const [index, { role, content }] of body.messages.entries()) {
    if (typeof content === "string") messages.push({ role, content });
    else addBlocks(messages, role, content, `messages[${index}].content`);
  }
  const kwargs = body.chat_template_kwargs ?? {};
  return {
    messages,
    ...(tools !== undefined &&
      tools.length > 0 && {
        tools: tools.map(({ name, description, input_schema }) => ({
          type: "function" as const,
          function: { name, ...(description !== undefined && { description }), parameters: input_schema },
        })),
      }),
    ...(choice !== undefined && { tool_choice: choiceOf(choice) }),
    ...(choice?.disable_parallel_tool_use !== undefined && {
      parallel_tool_calls: !choice.disable_parallel_tool_use,
    }),
    // Anthropic's models think only on request, so templates that support both are told not to by default.
    chat_template_kwargs: {
      enable_thinking: thinking !== undefined && thinking.type !== "disabled",
      ...kwargs,
    },
    ...(thinking?.budget_tokens !== undefined && { thinking_budget_tokens: thinking.budget_tokens }),
    ...(output?.effort && { reasoning_effort: output.effort }),
    ...(output?.format && {
      response_format: { type: "json_schema" as const, json_schema: { schema: output.format.schema } },
    }),
  };
}

function choiceOf(choice: NonNullable<CountRequest["tool_choice"]>): NonNullable<ChatRequest["tool_choice"]> {
  switch (choice.type) {
    case "auto":
    case "none":
      return choice.type;
    case "any":
      return "required";
    case "tool":
      if (choice.name === undefined) throw refusal("tool_choice", "tool_choice.name is required.");
      return { type: "function", function: { name: choice.name } };
  }
}

/** Adds a message of blocks; tool results become separate chat messages. */
function addBlocks(messages: Message[], role: string, blocks: Blocks, path: string): void {
  const parts: Part[] = [];
  const calls: NonNullable<Message["tool_calls"]> = [];
  let thinking = "";
  for (const [index, block] of blocks.entries()) {
    const at = `${path}[${index}]`;
    const need = <T>(value: T | undefined, name: string): T => {
      if (value === undefined) throw refusal(at, `${at}.${name} is required.`);
      return value;
    };
    switch (block.type) {
      case "text":
        parts.push({ type: "text", text: need(block.text, "text") });
        break;
      case "image":
        parts.push(imageOf(need(block.source, "source"), at));
        break;
      case "thinking":
        thinking += need(block.thinking, "thinking");
        break;
      case "tool_use":
        calls.push({
          id: need(block.id, "id"),
          type: "function",
          function: { name: need(block.name, "name"), arguments: JSON.stringify(block.input ?? {}) },
        });
        break;
      case "tool_result":
        messages.push({
          role: "tool",
          tool_call_id: need(block.tool_use_id, "tool_use_id"),
          content: resultOf(block.content ?? "", at),
        });
    }
  }
  if (parts.length === 0 && calls.length === 0 && thinking === "") return;
  messages.push({
    role,
    content: plain(parts),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(thinking !== "" && { reasoning_content: thinking }),
  });
}

function resultOf(
  content: NonNullable<Blocks[number]["content"]>,
  path: string,
): NonNullable<Message["content"]> {
  if (typeof content === "string") return content;
  return plain(
    content.map((block, index) => {
      if (block.type === "image") return imageOf(block.source, `${path}.content[${index}]`);
      return { type: "text", text: block.text ?? "" };
    }),
  );
}

function imageOf(source: Source, path: string): Part {
  if (source?.type === "base64" && source.data !== undefined) {
    return {
      type: "image_url",
      image_url: { url: `data:${source.media_type ?? "image/jpeg"};base64,${source.data}` },
    };
  }
  if (source?.type === "url" && source.url !== undefined) {
    return { type: "image_url", image_url: { url: source.url } };
  }
  throw refusal(path, `${path}.source: must have base64 data or a url.`);
}

/** Joins text parts, because some templates support only a single string. */
function plain(parts: Part[]): NonNullable<Message["content"]> {
  return parts.every(({ type }) => type === "text") ? parts.map(({ text }) => text ?? "").join("\n") : parts;
}
