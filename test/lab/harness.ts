import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Job } from "../../src/contracts/index.js";
import { type LabService, type LabServiceOptions, startLab } from "../../src/lab/index.js";
import { type Answer, send } from "../support/request.js";

export const demoInspect = { operation: "inspect", model: "demo", prompt: "The capital of France is" };

const meddler = new URL("./fixtures/meddle.mjs", import.meta.url).href;

/** A Lab on a free port with a home of its own; `close` leaves nothing behind. */
export interface Harness {
  lab: LabService;
  home: string;
  request(method: string, path: string, body?: unknown): Promise<Answer>;
  submit(body: object): Promise<Job>;
  /** Polls until the job is in its last state. */
  finished(id: string): Promise<Job>;
  /** Polls until a condition on a job holds. */
  until(id: string, condition: (job: Job) => boolean): Promise<Job>;
  /** Pids that the meddler wrote down: workers, then children of theirs. */
  pids(): number[];
  close(): Promise<void>;
}

export async function openHarness(
  options: Partial<LabServiceOptions> & { meddle?: string; home?: string } = {},
): Promise<Harness> {
  const { meddle, home: given, ...rest } = options;
  const home = given ?? (await mkdtemp(join(tmpdir(), "tapline-lab-")));
  setMeddle(meddle, home);
  const lab = await startLab({ port: 0, home, backend: "test", log: () => {}, ...rest });
  const request = (method: string, path: string, body?: unknown) =>
    send(`${lab.url}/lab/v1${path}`, method, body);
  const until = async (id: string, condition: (job: Job) => boolean) => {
    for (let attempt = 0; attempt < 3000; attempt++) {
      const { body } = await request("GET", `/jobs/${id}`);
      if (condition(body)) return body as Job;
      await sleep(20);
    }
    throw new Error(`job ${id} did not get there in a minute`);
  };
  return {
    lab,
    home,
    request,
    until,
    async submit(body) {
      const answer = await request("POST", "/jobs", body);
      if (answer.status !== 202) throw new Error(`${answer.status}: ${answer.body.error}`);
      return answer.body;
    },
    finished: (id) => until(id, ({ ended }) => ended !== null),
    pids: () => readPids(home),
    async close() {
      setMeddle(undefined, home);
      await lab.close();
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** Environment that makes workers go wrong; see fixtures/meddle.mjs. */
export function meddleEnvironment(meddle: string, home: string): Record<string, string> {
  return {
    NODE_OPTIONS: `--import ${meddler}`,
    TAPLINE_TEST_MEDDLE: meddle,
    TAPLINE_TEST_PIDS: join(home, "pids"),
  };
}

/** Sets what goes wrong in workers started from now on. */
export function setMeddle(meddle: string | undefined, home: string): void {
  for (const name of ["NODE_OPTIONS", "TAPLINE_TEST_MEDDLE", "TAPLINE_TEST_PIDS"]) delete process.env[name];
  if (meddle !== undefined) Object.assign(process.env, meddleEnvironment(meddle, home));
}

export function readPids(home: string): number[] {
  const path = join(home, "pids");
  return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n").map(Number) : [];
}

/** Whether a process is gone, waiting a moment for it. */
export async function isGone(pid: number): Promise<boolean> {
  for (let attempt = 0; attempt < 250; attempt++) {
    try {
      process.kill(pid, 0);
    } catch {
      return true;
    }
    if (isZombie(pid)) return true;
    await sleep(20);
  }
  return false;
}

// An orphan that nobody reaps (a container without init) is dead all the same.
function isZombie(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
  } catch {
    return false;
  }
}
