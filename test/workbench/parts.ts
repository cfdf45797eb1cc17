/** The workbench's parts in this process, before a server and a Lab that answer as the test says: no page, no model. */
import { mkdtempSync, rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Asker } from "../../src/workbench/asker.js";
import { Conversations } from "../../src/workbench/conversations.js";
import { Events } from "../../src/workbench/events.js";
import { Services } from "../../src/workbench/services.js";
import type { WorkbenchEvent } from "../../src/workbench/wire.js";
import { type Seen, scripted, sendJson } from "../client/scripted.js";

export type Answering = (response: ServerResponse, request: Seen) => void;

export interface Parts {
  events: Events;
  services: Services;
  conversations: Conversations;
  asker: Asker;
  /** Where conversations are kept. */
  folder: string;
  /** Everything that was told to the pages, as it was then. */
  told: WorkbenchEvent[];
  /** Requests that reached the services, without those of looks at them. */
  asked(): [method: string, path: string, body: unknown][];
  close(): Promise<void>;
}

/** The answers of the server and the Lab by method and path; a function writes the answer itself. */
export type Answers = Record<string, unknown | Answering>;

const looks = ["/lab/capabilities", "/props", "/lab/v1/health", "/lab/v1/jobs"];

/** The properties of a served model with this many blocks. */
export function capabilities(n_layer: number | null, model: string | null = "m"): object {
  return { model, n_layer, n_embd: 8, architecture: "a", backend: "cpu" };
}

export async function openParts(answers: Answers): Promise<Parts> {
  const folder = mkdtempSync(join(tmpdir(), "tapline-parts-"));
  const usual: Answers = {
    "GET /lab/capabilities": capabilities(4),
    "GET /props": { model_path: "/models/m.gguf" },
    "GET /lab/v1/health": { active_job: null, queued: 0 },
    "GET /lab/v1/jobs": { jobs: [] },
  };
  const service = await scripted((request, response) => {
    const key = `${request.method} ${request.path}`;
    const body = key in answers ? answers[key] : usual[key];
    if (typeof body === "function") (body as Answering)(response, request);
    else
      sendJson(response, body === undefined ? 404 : 200, body ?? { error: `Nothing is at ${request.path}.` });
  });
  const events = new Events();
  const told: WorkbenchEvent[] = [];
  const publish = events.publish.bind(events);
  events.publish = (event) => {
    told.push(structuredClone(event));
    publish(event);
  };
  const services = new Services({ server: service.url, lab: service.url }, events);
  const conversations = await Conversations.open(join(folder, "conversations"), events);
  const asker = new Asker(services, conversations, events);
  return {
    ...{ events, services, conversations, asker, told },
    folder: join(folder, "conversations"),
    asked: () =>
      service.seen
        .filter(({ path }) => !looks.includes(path))
        .map(({ method, path, body }) => [method, path, body === "" ? undefined : JSON.parse(body)]),
    async close() {
      asker.close();
      services.close();
      await conversations.settled();
      await service.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** An answer of these events, each with its choices, and the end of the stream. */
export const streams =
  (...events: object[][]): Answering =>
  (response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    for (const choices of events) response.write(`data: ${JSON.stringify({ choices })}\n\n`);
    response.end("data: [DONE]\n\n");
  };

/** The last event of a choice. */
export const stop = (index = 0, reason = "stop") => ({ index, delta: {}, finish_reason: reason });
