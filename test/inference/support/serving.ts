import { listen } from "../../../src/http/index.js";
import { endService, inferenceApp, loadService, type ServingOptions } from "../../../src/inference/index.js";
import type { InferenceService } from "../../../src/inference/service.js";
import { type Answer, send } from "../../support/request.js";
import { until } from "../../support/until.js";

export interface TestServer {
  url: string;
  service: InferenceService;
  /** Lines that the server logged: internal faults. */
  faults: string[];
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  put(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  close(): Promise<void>;
}

/** The demo model, served by this very process on a free port. */
export async function startServer(options: Partial<ServingOptions> = {}): Promise<TestServer> {
  const service = await loadService({ model: "demo", ...options });
  const faults: string[] = [];
  const listening = await listen(
    inferenceApp(service, (line) => faults.push(line)),
    { port: 0 },
  );
  return {
    url: listening.url,
    service,
    faults,
    get: (path, headers) => send(`${listening.url}${path}`, "GET", undefined, headers),
    post: (path, body, headers) => send(`${listening.url}${path}`, "POST", body, headers),
    put: (path, body, headers) => send(`${listening.url}${path}`, "PUT", body, headers),
    async close() {
      await endService(service, listening.server, 0);
      await listening.close();
    },
  };
}

/** Waits until no slot is busy, nothing waits, and no request is open. */
export async function untilIdle(service: InferenceService): Promise<void> {
  await until(async () => {
    const { busy_slots, deferred } = await service.engine.metrics();
    return busy_slots === 0 && deferred === 0 && service.stats.requests.active === 0;
  }, "no slot is busy and no request open");
}

/** The JSON of each event of a stream, without the closing [DONE]. */
export function streamEvents(text: string): Record<string, unknown>[] {
  return text
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map((event) => JSON.parse(event.slice(6)));
}

export const user = (content: string) => [{ role: "user", content }];
