import { operations, version } from "../contracts/index.js";
import {
  createApp,
  type FrontPage,
  frontPage,
  type Listening,
  listen,
  localAccess,
  routesOf,
} from "../http/index.js";
import { openLibrary } from "../library/library.js";
import { labEndpoints } from "./endpoints.js";
import { Lab, type LabOptions } from "./lab.js";

export interface LabServiceOptions extends LabOptions {
  /** 0 for any free port. */
  port: number;
  /** The compute backend, for the health answer. */
  backend: string;
}

export interface LabService {
  readonly url: string;
  readonly port: number;
  /** Folder of the jobs. */
  readonly folder: string;
  /** Ends the worker, the port and the lock. Idempotent. */
  close(): Promise<void>;
}

/** Starts the Lab, on loopback only. @throws UserError */
export async function startLab(options: LabServiceOptions): Promise<LabService> {
  const lab = await Lab.open(options);
  let http: Listening;
  try {
    const library = openLibrary(options.library ?? options.home);
    const app = createApp({
      before: [frontPage(() => greeting(options.backend)), localAccess()],
      routers: [routesOf(labEndpoints, { lab, backend: options.backend, library })],
      ...(options.log === undefined ? {} : { log: options.log }),
    });
    http = await listen(app, { port: options.port });
  } catch (error) {
    await lab.close();
    throw error;
  }
  return {
    url: http.url,
    port: http.port,
    folder: lab.folder,
    async close() {
      // Ending the worker also answers a cancel request that waits for it.
      await Promise.all([lab.close(), http.close()]);
    },
  };
}

/** Shows nothing about jobs, because web pages have no access to them. */
function greeting(backend: string): FrontPage {
  return {
    name: "tapline lab",
    what: "Experiments on language model internals. Jobs run one at a time, each in a separate process.",
    state: `Ready, version ${version}, computing on ${backend}. Open to programs on this machine, but not to web pages.`,
    endpoints: [
      ["GET /lab/v1/health", "capabilities, limits and queue length"],
      ["GET /lab/v1/openapi.json", "the OpenAPI description"],
      ["POST /lab/v1/jobs", `submits a job: ${operations.join(", ")}`],
      ["GET /lab/v1/jobs", "the latest jobs"],
      ["GET /lab/v1/jobs/{id}", "one job and its result"],
      ["GET /lab/vectors", "saved directions; likewise /lab/probes"],
    ],
    example: (url) => `curl -s ${url}/lab/v1/jobs -d '{
  "operation": "inspect", "model": "demo",
  "prompt": "The capital of France is", "layers": [3, 7]}'`,
  };
}
