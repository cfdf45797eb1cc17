import { mkdtemp, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { checkSubmission, type Operation } from "../contracts/index.js";
import { UserError } from "../contracts/user-error.js";
import { taplineHome } from "../files/home.js";
import { longestDeadlineMs, runWorker } from "../lab/supervisor.js";
import type { ConductOptions } from "./conduct.js";
import { UsageError } from "./exit-code.js";
import { print, printJson, shortPath } from "./output.js";
import { makeFolder } from "./run-experiment.js";
import { withProgress } from "./with-progress.js";

/** Computes part i of n of an experiment in a worker process, and writes its file. @throws UserError */
export async function computePart(
  operation: Operation,
  submission: Record<string, unknown>,
  part: [number, number],
  options: ConductOptions,
): Promise<void> {
  const { out } = options;
  const config = checkSubmission({ operation, ...submission });
  if (typeof out !== "string") throw new UsageError("--shard requires --out, the folder of all parts.");
  if (part[0] >= part[1]) {
    throw new UsageError(`--shard must be i/n with i from 0 to n - 1, got ${part.join("/")}.`);
  }
  await makeFolder(resolve(out));
  await withProgress(
    options,
    async (progress, signal) => {
      const folder = await mkdtemp(join(tmpdir(), "tapline-part-"));
      const log = await open(join(folder, "worker.log"), "a");
      try {
        const outcome = await runWorker({
          ...{ config, folder, log: log.fd, signal, library: taplineHome() },
          deadlineMs: longestDeadlineMs,
          part: { part, folder: resolve(out) },
          onProgress: (one) => progress.show({ status: "running", progress: one }),
        });
        signal.throwIfAborted();
        if (outcome.kind === "result") return outcome.result.artifacts[0] as string;
        const said = (await readFile(join(folder, "worker.log"), "utf8").catch(() => "")).trim();
        const message = outcome.kind === "failure" ? outcome.message : "The worker was stopped.";
        throw new UserError(said === "" ? message : `${said.slice(-2000)}\n${message}`);
      } finally {
        await log.close();
        await rm(folder, { recursive: true, force: true });
      }
    },
    (file) =>
      options.json
        ? printJson({ part, folder: resolve(out), file })
        : print(
            `Wrote ${shortPath(join(resolve(out), file))}; tapline merge computes the result from all parts.`,
          ),
  );
}
