/** A router's way for one request through backends, without a network: what each answers is the test's, and so is the time. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { ExecutionRecorder } from "../../../src/executions/index.js";
import type { HttpError } from "../../../src/http/index.js";
import { Backend } from "../../../src/router/backend.js";
import { forward } from "../../../src/router/forward.js";
import type { RouterService } from "../../../src/router/service.js";
import { standIn } from "../../support/with-time.js";
import { Client } from "./client.js";

type Handler = Required<Dispatcher.DispatchHandler>;
export type Script = (handler: Handler, controller: Dispatcher.DispatchController, client: Client) => void;

let ms = 1000;
let putBack = () => {};
const backends: Backend[] = [];

/** Lets the time stand still at 1000 ms. */
export function begin(): void {
  ms = 1000;
  putBack = standIn({ "performance.now": () => ms });
}

/** So many milliseconds later. */
export function pass(more: number): void {
  ms += more;
}

/** Time continues, and everything that a test opened is closed. */
export async function end(): Promise<void> {
  putBack();
  for (const one of backends.splice(0)) await one.destroy();
}

/** An answer with a status, after this many milliseconds. */
export const answers =
  (status: number, body = "x", raw: string[] = [], takes = 0): Script =>
  (handler, controller) => {
    ms += takes;
    Object.assign(controller, { rawHeaders: raw });
    handler.onResponseStart(controller, status, {}, "");
    if (body !== "") handler.onResponseData(controller, Buffer.from(body));
    handler.onResponseEnd(controller, {});
  };
export const fails =
  (code: string, head = false): Script =>
  (handler, controller) => {
    if (head) handler.onResponseStart(controller, 200, {}, "");
    handler.onResponseError(controller, Object.assign(new Error("it ended"), { code }));
  };

interface Sent {
  to: string;
  fresh: boolean;
  path: string;
  body: string;
  headers: string[];
}

/** A healthy backend at a name that serves some models, whose answers are these, the last one for ever. */
export function backend(
  name: string,
  scripts: Script[],
  models: Record<string, unknown>[] = [{ id: "m" }],
): Backend {
  const one = new Backend({ url: `http://${name}` });
  one.state = "healthy";
  one.setModels(models as { id: string }[], 1);
  const pools = { scripts };
  backends.push(one);
  return Object.assign(one, pools);
}

/** A router of some backends, and the records of its requests. */
export function router(...given: Backend[]) {
  const told: unknown[][] = [];
  const sent: Sent[] = [];
  const client = new Client();
  for (const one of given) {
    const { scripts } = one as unknown as { scripts: Script[] };
    const pool = (fresh: boolean) => ({
      closed: false,
      destroy: async () => {},
      dispatch({ path, body, headers }: { path: string; body: Buffer; headers: string[] }, handler: Handler) {
        sent.push({ to: new URL(one.url).host, fresh, path, body: body.toString(), headers });
        const script = (scripts.length > 1 ? scripts.shift() : scripts[0]) as Script;
        const controller = { rawHeaders: [], pause() {}, resume() {}, abort() {} };
        handler.onRequestStart(controller as never, {});
        queueMicrotask(() => script(handler, controller as never, client));
      },
    });
    Object.assign(one, { pool: pool(false), fresh: pool(true) });
  }
  const names = (of: Backend[]) => of.map(({ url }) => new URL(url).host);
  const service = {
    backends: given,
    executions: new ExecutionRecorder(),
    apiKey: undefined,
    cors: [],
    via: "1.1 me",
    requests: { total: 0, active: 0, completed: 0, failed: 0, cancelled: 0, refused: 0, retried: 0 },
    firstToken: { add: (seconds: number) => told.push(["first token", seconds]) },
    health: {
      answered: (one: Backend) => told.push(["answered", ...names([one])]),
      failed: (one: Backend, epoch: number, sentence: string) => {
        told.push(["failed", ...names([one]), epoch, sentence]);
        one.state = "aside";
      },
      checkForRequest: async (might: (one: Backend) => boolean) => {
        told.push(["checkForRequest", ...names(given.filter(might))]);
        return false;
      },
      refresh: async (): Promise<void> => void told.push(["refresh"]),
      retryAfterSeconds: () => 7,
    },
    ended: (outcome: string, began: number) => {
      service.requests.active--;
      told.push(["ended", outcome, began]);
    },
  };
  const ask = async (
    body: object | string,
    headers: Record<string, string> = {},
  ): Promise<HttpError | null> => {
    const raw = Object.entries(headers).flat();
    const lower = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
    );
    const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
    const request = Object.assign(Readable.from([bytes]), {
      headers: lower,
      rawHeaders: raw,
      url: "/v1/chat/completions?a=b",
      method: "POST",
    });
    return forward(
      service as unknown as RouterService,
      request as unknown as IncomingMessage,
      client as unknown as ServerResponse,
      "/v1/chat/completions",
    ).then(
      () => null,
      (error: HttpError) => error,
    );
  };
  const record = () => {
    const { executions } = service.executions.list();
    return service.executions.find(executions[0]?.id as string);
  };
  const notes = () => record()?.events.map(({ kind, text }) => `${kind}: ${text}`);
  return { service, told, sent, client, ask, record, notes };
}
