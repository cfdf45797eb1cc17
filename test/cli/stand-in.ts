/** A service on a separate port that answers commands as a test says and records the requests. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Seen, scripted, sendJson } from "../client/scripted.js";

/** An answer: JSON; raw bytes; or, with a status, a refusal and its sentence. */
type Answer = unknown;

export class Refused {
  constructor(
    readonly status: number,
    readonly sentence: string,
  ) {}
}

export interface StandIn {
  url: string;
  port: number;
  /** `METHOD /path`, and the body where there was one: JSON read, anything else as text. */
  asked(): Array<[line: string, body?: unknown]>;
  /** By `METHOD /path` without the query; a function is called for each request. */
  answers: Record<string, Answer | ((request: Seen) => Answer)>;
  /** Forgets what it was asked, and every answer. */
  begin(): void;
  close(): Promise<void>;
}

export async function standIn(): Promise<StandIn> {
  const service: Pick<StandIn, "answers"> = { answers: {} };
  const { seen, url, port, close } = await scripted(async (request, response) => {
    const line = `${request.method} ${request.path.split("?")[0]}`;
    const known = service.answers[line];
    const answer: Answer = typeof known === "function" ? await known(request) : known;
    if (answer instanceof Refused) sendJson(response, answer.status, { error: answer.sentence });
    else if (answer === undefined) sendJson(response, 404, { error: `${line} was not expected.` });
    else if (answer instanceof Uint8Array) response.end(answer);
    else sendJson(response, 200, answer);
  });
  return Object.assign(service, {
    url,
    port,
    close,
    asked: () =>
      seen.map(({ method, path, headers, body }): [string, unknown?] =>
        body === ""
          ? [`${method} ${path}`]
          : [`${method} ${path}`, headers["content-type"] === "application/json" ? JSON.parse(body) : body],
      ),
    begin: () => {
      seen.length = 0;
      service.answers = {};
    },
  });
}

/** The same, with an empty folder that this process works in until the service is closed. */
export async function standInWithFolder(): Promise<StandIn & { folder: string }> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "tapline-cli-")));
  const before = process.cwd();
  const service = await standIn();
  const { close } = service;
  process.chdir(folder);
  return Object.assign(service, {
    folder,
    close: async () => {
      process.chdir(before);
      await close();
      rmSync(folder, { recursive: true, force: true });
    },
  });
}
