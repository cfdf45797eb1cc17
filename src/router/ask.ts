import { type IncomingMessage, request as openHttp } from "node:http";
import { request as openHttps } from "node:https";
import { routerLimits } from "../contracts/router.js";
import { routeHeader } from "./headers.js";

export interface BackendAnswer {
  status: number;
  /** The parsed body of a JSON answer; undefined for any other. */
  body: unknown;
}

/** A backend did not answer in time; it may be frozen. */
export class Silence extends Error {
  override name = "Silence";
}

/**
 * Requests a status page of a backend, on a new connection to prove that it still accepts connections.
 * @throws Silence if the whole answer did not arrive in time, or the connection's error
 */
export function ask(
  url: string,
  apiKey: string | undefined,
  timeoutMs: number,
  signal: AbortSignal,
  route?: string,
): Promise<BackendAnswer> {
  const open = url.startsWith("https:") ? openHttps : openHttp;
  return new Promise((resolve, reject) => {
    const headers: Record<string, string> = { Accept: "application/json" };
    if (route !== undefined) headers[routeHeader] = route;
    if (apiKey !== undefined) headers.Authorization = `Bearer ${apiKey}`;
    const request = open(url, { agent: false, headers, signal }, (response) => {
      readAnswer(response).then(resolve, reject).finally(settled);
    });
    const settled = afterRunning(timeoutMs, () => {
      reject(new Silence("timeout"));
      request.destroy();
    });
    request.on("error", (error) => {
      settled();
      reject(error);
    });
    request.end();
  });
}

/** Number of ticks per timeout. */
const slices = 20;

/**
 * Calls `over` after `ms` milliseconds of running time: while this process was suspended or starved, an answer may have
 * arrived that it could not read.
 * @returns a function that cancels the timeout
 */
function afterRunning(ms: number, over: () => void): () => void {
  let left = slices;
  const timer = setInterval(() => {
    if (--left > 0) return;
    clearInterval(timer);
    over();
  }, ms / slices);
  return () => clearInterval(timer);
}

async function readAnswer(response: IncomingMessage): Promise<BackendAnswer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    length += (chunk as Buffer).length;
    if (length > routerLimits.answer_bytes) {
      throw new Error(`an answer has more than ${routerLimits.answer_bytes} bytes`);
    }
    chunks.push(chunk as Buffer);
  }
  let body: unknown;
  try {
    body = JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    body = undefined;
  }
  return { status: response.statusCode as number, body };
}
