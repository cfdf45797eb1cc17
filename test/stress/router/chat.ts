import { Agent, request as open } from "node:http";

const agent = new Agent({ keepAlive: true });

export interface ChatOptions {
  words: number;
  tokens: number;
  stream: boolean;
  /** Leave after this many bytes. */
  leaveAfter?: number;
}

export type ChatEnd =
  | { kind: "whole"; text: string }
  /** An answer without content: the client is asked to come back, or informed that it failed. */
  | { kind: "status"; status: number; text: string }
  | { kind: "cut"; bytes: number; code: string }
  | { kind: "left" };

/** One chat, to its end whatever that is. */
export function chat(url: string, options: ChatOptions): Promise<ChatEnd> {
  const body = JSON.stringify({
    model: "auto",
    messages: [{ role: "user", content: prompt(options.words) }],
    max_tokens: options.tokens,
    ignore_eos: true,
    stream: options.stream,
    ...(options.stream ? { stream_options: { include_usage: true } } : {}),
  });
  return new Promise((resolve) => {
    let bytes = 0;
    const chunks: Buffer[] = [];
    const cut = (error: NodeJS.ErrnoException) =>
      resolve({ kind: "cut", bytes, code: error.code ?? error.message });
    const request = open(`${url}/v1/chat/completions`, { method: "POST", agent }, (response) => {
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        chunks.push(chunk);
        if (options.leaveAfter !== undefined && bytes >= options.leaveAfter) {
          resolve({ kind: "left" });
          request.destroy();
        }
      });
      response.on("error", cut);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        const status = response.statusCode as number;
        resolve(status === 200 ? { kind: "whole", text } : { kind: "status", status, text });
      });
    });
    request.on("error", cut);
    request.end(body);
  });
}

export const prompt = (words: number) => "the ".repeat(words).trim();

export function closeConnections(): void {
  agent.destroy();
}

interface Part {
  id: string;
  choices: { delta?: { content?: string | null }; finish_reason?: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number } | null;
}

/**
 * An answer's own description: one id all the way, one end, and the numbers of tokens that tie it to its request.
 * @throws Error that says what is mixed, doubled or missing
 */
export function readAnswer(text: string, stream: boolean): { id: string; prompt: number; tokens: number } {
  const parts = stream ? eventsOf(text) : [JSON.parse(text) as Part];
  const ids = new Set(parts.map(({ id }) => id));
  const ends = parts.flatMap(({ choices }) => choices).filter(({ finish_reason: reason }) => reason);
  const usages = parts.flatMap(({ usage }) => usage ?? []);
  const [usage] = usages;
  if (ids.size !== 1) throw new Error(`an answer has ${ids.size} ids`);
  if (ends.length !== 1) throw new Error(`an answer ends ${ends.length} times`);
  if (usage === undefined || usages.length !== 1)
    throw new Error(`an answer counts itself ${usages.length} times`);
  return { id: parts[0]?.id as string, prompt: usage.prompt_tokens, tokens: usage.completion_tokens };
}

function eventsOf(text: string): Part[] {
  const events = text.split("\n\n");
  if (events.pop() !== "" || events.pop() !== "data: [DONE]")
    throw new Error("a stream ends without its end");
  return events
    .filter((event) => !event.startsWith(":"))
    .map((event) => {
      if (!event.startsWith("data: {")) throw new Error(`an event is none: ${event.slice(0, 200)}`);
      return JSON.parse(event.slice(6)) as Part;
    });
}
