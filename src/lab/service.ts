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
  /** 0 takes any free port. */
  port: number;
  /** What this build computes with, for the health answer. */
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

/** Starts the Lab: loopback only, whatever asks. @throws UserError */
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
      // The worker first: its end answers a cancel that may be waiting for it.
      await Promise.all([lab.close(), http.close()]);
    },
  };
}

/** Nothing of the jobs: a page is no program. */
function greeting(backend: string): FrontPage {
  return {
    name: "tapline lab",
    what: "Experiments on the insides of language models: one job at a time, each in a process of its own.",
    state: `Ready, version ${version}, computing on ${backend}. Programs on this machine may ask; web pages may not.`,
    endpoints: [
      ["GET /lab/v1/health", "what it can do, its limits, how many jobs wait"],
      ["GET /lab/v1/openapi.json", "every body and every answer"],
      ["POST /lab/v1/jobs", `submits a job: ${operations.join(", ")}`],
      ["GET /lab/v1/jobs", "the latest jobs"],
      ["GET /lab/v1/jobs/{id}", "one job and its result"],
      ["GET /lab/vectors", "directions that are kept by name; /lab/probes the same"],
    ],
    example: (url) => `curl -s ${url}/lab/v1/jobs -d '{
  "operation": "inspect", "model": "demo",
  "prompt": "The capital of France is", "layers": [3, 7]}'`,
  };
}
