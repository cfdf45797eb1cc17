import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Job } from "../../src/contracts/index.js";
import { type LabService, type LabServiceOptions, startLab } from "../../src/lab/index.js";
import { compiledWorker } from "../support/program.js";
import { type Answer, send } from "../support/request.js";
import { until as untilSo } from "../support/until.js";

export const demoInspect = { operation: "inspect", model: "demo", prompt: "The capital of France is" };

const meddler = new URL("./fixtures/meddle.mjs", import.meta.url).href;

/** A Lab on a free port with a temporary home, which `close` removes. */
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
  const lab = await startLab({ port: 0, home, backend: "test", log: () => {}, ...compiledWorker, ...rest });
  const request = (method: string, path: string, body?: unknown) =>
    send(`${lab.url}/lab/v1${path}`, method, body);
  const until = async (id: string, condition: (job: Job) => boolean): Promise<Job> =>
    untilSo(async () => {
      const { body } = await request("GET", `/jobs/${id}`);
      return condition(body) && (body as Job);
    }, `job ${id}: ${condition}`);
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

/** Waits until a process is gone. */
export async function gone(pid: number): Promise<void> {
  await untilSo(() => {
    try {
      process.kill(pid, 0);
    } catch {
      return true;
    }
    return isZombie(pid);
  }, `process ${pid} is gone`);
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
