import type { ChatRequest } from "../../contracts/chat.js";
import type { ResponsesItem, ResponsesRequest } from "../../contracts/responses.js";
import { fieldRefusal, refusal } from "../check-body.js";

type Message = ChatRequest["messages"][number];
type Content = NonNullable<Message["content"]>;

/**
 * Converts a body of `/v1/responses` to a chat. llama-server's converter drops unknown fields (text formats, named
 * tools, tools other than functions) and refuses items that clients send back unchanged; here everything is converted
 * or refused by name.
 * @throws HttpError 400
 */
export function chatOfResponses(body: ResponsesRequest): ChatRequest {
  const { input, instructions, max_output_tokens, tools, tool_choice, text, reasoning, include } = body;
  const { top_logprobs } = body;
  const logprobs = top_logprobs !== undefined || include?.includes("message.output_text.logprobs") === true;
  const messages: Message[] = instructions === undefined ? [] : [{ role: "system", content: instructions }];
  if (typeof input === "string") messages.push({ role: "user", content: input });
  else
    input.forEach((item, index) => {
      addItem(messages, item, `input[${index}]`);
    });
  const effort = reasoning?.effort;
  const format = text?.format;
  return {
    ...pick(body),
    messages,
    ...(max_output_tokens !== undefined && { max_tokens: max_output_tokens }),
    ...(tools !== undefined && tools.length > 0 && { tools: tools.map(toolOf) }),
    ...(tool_choice !== undefined && {
      tool_choice:
        typeof tool_choice === "string"
          ? tool_choice
          : { type: "function" as const, function: { name: tool_choice.name } },
    }),
    ...(format && {
      response_format:
        format.type === "json_schema"
          ? { type: format.type, json_schema: { schema: format.schema ?? {} } }
          : { type: format.type },
    }),
    ...(effort && { reasoning_effort: effort }),
    ...(logprobs && { logprobs: true, top_logprobs: top_logprobs ?? 0 }),
  };
}

const passed = [
  "model",
  "stream",
  "parallel_tool_calls",
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "seed",
  "presence_penalty",
  "frequency_penalty",
  "logit_bias",
  "chat_template_kwargs",
  "tapline",
] as const;

function pick(body: ResponsesRequest): Pick<ResponsesRequest, (typeof passed)[number]> {
  return Object.fromEntries(
    passed.flatMap((name) => (body[name] === undefined ? [] : [[name, body[name]]])),
  ) as Pick<ResponsesRequest, (typeof passed)[number]>;
}

function toolOf(tool: NonNullable<ResponsesRequest["tools"]>[number], index: number) {
  const path = `tools[${index}]`;
  if (tool.type !== "function") {
    throw fieldRefusal(path, `only tools of type function are supported, got ${tool.type}.`);
  }
  if (tool.name === undefined) throw refusal(path, `${path}.name is required.`);
  return {
    type: "function" as const,
    function: {
      name: tool.name,
      ...(tool.description && { description: tool.description }),
      ...(tool.parameters && { parameters: tool.parameters }),
    },
  };
}

/** Adds an item to the chat. Consecutive assistant items become one chat message. */
function addItem(messages: Message[], item: ResponsesItem, path: string): void {
  const last = messages.at(-1);
  const assistant = (): Message => {
    if (last?.role === "assistant") return last;
    const message: Message = { role: "assistant", content: "" };
    messages.push(message);
    return message;
  };
  const need = (name: "call_id" | "name" | "arguments" | "output" | "content"): never => {
    throw refusal(path, `${path}.${name} is required.`);
  };
  switch (item.type ?? "message") {
    case "message": {
      if (item.role === undefined) throw refusal(path, `${path}.role is required.`);
      const content = contentOf(item.content ?? need("content"), `${path}.content`);
      if (item.role !== "assistant") {
        messages.push({ role: item.role === "developer" ? "system" : item.role, content });
      } else if (last?.role === "assistant" && last.tool_calls === undefined) {
        last.content = `${textOf(last.content)}${textOf(content)}`;
      } else messages.push({ role: "assistant", content: textOf(content) });
      return;
    }
    case "reasoning": {
      const parts = [...(Array.isArray(item.content) ? item.content : []), ...(item.summary ?? [])];
      const text = parts.map((part) => part.text ?? "").join("\n");
      // Encrypted or empty reasoning is skipped.
      if (text !== "") messages.push({ role: "assistant", content: "", reasoning_content: text });
      return;
    }
    case "function_call": {
      const call = {
        id: item.call_id ?? need("call_id"),
        type: "function" as const,
        function: { name: item.name ?? need("name"), arguments: item.arguments ?? need("arguments") },
      };
      const message = assistant();
      message.tool_calls = [...(message.tool_calls ?? []), call];
      return;
    }
    case "function_call_output":
      messages.push({
        role: "tool",
        tool_call_id: item.call_id ?? need("call_id"),
        content: contentOf(item.output ?? need("output"), `${path}.output`),
      });
      return;
    default:
      throw fieldRefusal(
        path,
        `supported items are message, reasoning, function_call and function_call_output, got ${item.type}.`,
      );
  }
}

function contentOf(content: NonNullable<ResponsesItem["content"]>, path: string): Content {
  if (typeof content === "string") return content;
  const parts = content.map((part, index) => {
    const at = `${path}[${index}]`;
    switch (part.type) {
      case "input_text":
      case "output_text":
      case "text":
        if (part.text === undefined) throw refusal(at, `${at}.text is required.`);
        return { type: "text", text: part.text };
      case "refusal":
        return { type: "text", text: part.refusal ?? "" };
      case "input_image":
        if (!part.image_url) throw refusal(at, `${at}.image_url is required.`);
        return { type: "image_url", image_url: { url: part.image_url } };
      default:
        throw fieldRefusal(
          at,
          `supported parts are input_text, output_text and input_image, got ${part.type}.`,
        );
    }
  });
  const texts = parts.map((part) => (part.type === "text" ? part.text : undefined));
  return texts.every((text) => text !== undefined) ? texts.join("\n") : parts;
}

function textOf(content: Message["content"]): string {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  return content.map((part) => part.text ?? "").join("\n");
}
