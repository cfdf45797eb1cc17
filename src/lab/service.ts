import { createApp, type Listening, listen, localAccess } from "../http/index.js";
import { Lab, type LabOptions } from "./lab.js";
import { labRoutes } from "./routes.js";

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
    const app = createApp({
      before: [localAccess()],
      routers: [labRoutes(lab, options.backend)],
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
