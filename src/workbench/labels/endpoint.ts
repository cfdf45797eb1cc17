import type { LabelRequest } from "../../contracts/workbench.js";
import { HttpError } from "../../http/index.js";
import type { AskModel } from "./detection.js";

/** Patience with one answer, and the largest one. */
const limits = { ms: 60_000, bytes: 1_000_000 } as const;

/** Asks an OpenAI-style endpoint at an address ending in /v1; the key goes to this address only. */
export function askEndpoint(
  { url, model, key }: NonNullable<LabelRequest["endpoint"]>,
  signal: AbortSignal,
): AskModel {
  const address = `${url.replace(/\/+$/, "")}/chat/completions`;
  return async (content, max_tokens) => {
    let text: string;
    let status: number;
    try {
      const response = await fetch(address, {
        method: "POST",
        // An address that the user did not enter would get the key and the texts.
        redirect: "error",
        signal: AbortSignal.any([signal, AbortSignal.timeout(limits.ms)]),
        headers: {
          "Content-Type": "application/json",
          ...(key !== undefined && { Authorization: `Bearer ${key}` }),
        },
        body: JSON.stringify({ model, messages: [{ role: "user", content }], max_tokens, temperature: 0 }),
      });
      status = response.status;
      text = await bounded(response);
    } catch (error) {
      const { message, cause } = error as Error;
      throw new HttpError(502, `${address} did not answer: ${String((cause as Error)?.message ?? message)}.`);
    }
    if (status !== 200) throw new HttpError(502, `${address} returned status ${status}.`);
    return contentOf(text, address);
  };
}

/** The body, up to the limit. */
async function bounded({ body }: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body ?? []) {
    bytes += part.length;
    if (bytes > limits.bytes) throw new Error(`the answer has more than ${limits.bytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function contentOf(text: string, address: string): string {
  try {
    const { choices } = JSON.parse(text) as { choices: { message: { content: unknown } }[] };
    const content = choices[0]?.message.content;
    if (typeof content === "string") return content;
  } catch {}
  throw new HttpError(502, `${address} returned no chat completion.`);
}
