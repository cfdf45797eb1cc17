import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { treeOf } from "../../../scripts/build/paths.js";
import { buildTools } from "../../../scripts/build/tools.js";

/** The actions of a process's pretend GPUs. */
export interface Counts {
  /** Operations computed. */
  nodes: number;
  /** Pieces of graphs computed, and pieces of new graphs. */
  computes: number;
  builds: number;
  /** Times that the host waited for work of a device. */
  waits: number;
  uploads: number;
  /** Bytes. */
  uploaded: number;
  downloaded: number;
}

let built: Promise<string> | undefined;

/**
 * Environment of a process with pretend GPUs: `DEVICESxMEBIBYTES[-TAKEN]`, see pretend_gpu.cpp. Links the addon first
 * where nobody has since the last change (a few seconds after the addon itself).
 */
export async function pretendGpu(
  spec: string,
): Promise<{ TAPLINE_ADDON: string; TAPLINE_PRETEND_GPU: string }> {
  built ??= buildTools(["tapline-pretend-gpu"], { say: () => {} }).then(
    (paths) => paths["tapline-pretend-gpu"] as string,
  );
  const addon = await built;
  if (!existsSync(addon)) throw new Error(`${addon} was not built in ${treeOf("cpu")}.`);
  return { TAPLINE_ADDON: addon, TAPLINE_PRETEND_GPU: spec };
}

/**
 * Runs a TypeScript file with pretend GPUs and one JSON argument; its output is JSON, too.
 * @param wrong what the devices get wrong; see pretend_gpu.cpp
 */
export async function onPretendGpu<T>(
  spec: string,
  file: URL,
  argument: unknown,
  wrong?: "softmax" | "choice" | "positions",
): Promise<{ output: T; counts: Counts }> {
  const folder = await mkdtemp(join(tmpdir(), "tapline-pretend-"));
  try {
    const report = join(folder, "counts.json");
    const env = {
      ...process.env,
      ...(await pretendGpu(spec)),
      TAPLINE_PRETEND_GPU_COUNTS: report,
      ...(wrong && { TAPLINE_PRETEND_GPU_WRONG: wrong }),
    };
    const child = spawn(process.execPath, ["--import", "tsx", file.pathname, JSON.stringify(argument)], {
      stdio: ["ignore", "pipe", "inherit"],
      env,
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    const [code, signal] = await once(child, "close");
    if (code !== 0) throw new Error(`${file.pathname} ended with ${signal ?? code}.`);
    return { output: JSON.parse(output) as T, counts: JSON.parse(await readFile(report, "utf8")) as Counts };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
