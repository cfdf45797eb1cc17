import { type Router, type StartOptions, startRouter } from "../../../src/router/index.js";
import { type Answer, send } from "../../support/request.js";

export interface TestRouter extends Router {
  events: string[];
  faults: string[];
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  chat(body: object, headers?: Record<string, string>): Promise<Answer>;
}

/** A router on a free port, in front of these addresses. */
export async function startRouting(
  urls: (string | { url: string })[],
  options: Partial<StartOptions> = {},
): Promise<TestRouter> {
  const events: string[] = [];
  const faults: string[] = [];
  const router = await startRouter({
    port: 0,
    backends: urls.map((url) => (typeof url === "string" ? { url } : url)),
    onEvent: (event) => events.push(event.event === "aside" ? `${event.url}: ${event.sentence}` : event.url),
    log: (line) => faults.push(line),
    graceMs: 0,
    ...options,
  });
  return Object.assign(router, {
    events,
    faults,
    get: (path: string, headers?: Record<string, string>) =>
      send(`${router.url}${path}`, "GET", undefined, headers),
    chat: (body: object, headers?: Record<string, string>) =>
      send(`${router.url}/v1/chat/completions`, "POST", body, headers),
  });
}

export const messages = [{ role: "user", content: "What is the capital of France?" }];
