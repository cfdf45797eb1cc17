import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A tensor as `llama-eval-callback` prints it: its first and last values, and the sum of all. */
export interface PrintedTensor {
  name: string;
  /** ne[0..3]; ne[0] is the length of a row. */
  shape: [number, number, number, number];
  /** Values with their row (over ne[1..3]) and column. Four decimals. */
  values: Array<{ row: number; column: number; value: number }>;
  /** Sum in float32, element after element. Six decimals. */
  sum: number;
}

export interface EvalCallbackRun {
  tokens: number[];
  /** Every float tensor of the forward pass, in the order of computation. */
  tensors: PrintedTensor[];
}

/** What both sides compute with. One micro-batch holds the whole prompt. */
export const settings = { nCtx: 512, nBatch: 256, threads: 1 } as const;

const timeoutMs = 120_000;

/** The tool prints this many values at either end of each dimension. */
const shown = 3;

/**
 * Computes `prompt` with llama.cpp's own tool and reads what it prints. The tool is built with flush-log.cpp, or
 * the end of its output would be lost; that the end is there is checked all the same. `exact` keeps K and V in
 * F32, as tapline does for weights in F32.
 */
export async function runEvalCallback(
  tool: string,
  model: string,
  prompt: string,
  exact: boolean,
  further: readonly string[] = [],
): Promise<EvalCallbackRun> {
  const flags = ["-m", model, "-p", prompt, "-ngl", "0", "-fit", "off", "--log-colors", "off"];
  flags.push("-c", `${settings.nCtx}`, "-b", `${settings.nBatch}`, "-ub", `${settings.nBatch}`);
  flags.push("-t", `${settings.threads}`, "--no-log-prefix", "--no-log-timestamps", ...further);
  if (exact) flags.push("-ctk", "f32", "-ctv", "f32", "-fa", "off");
  const folder = await mkdtemp(join(tmpdir(), "tapline-eval-callback-"));
  try {
    const { output, log } = await capture(tool, flags, join(folder, "output"));
    const listed = /number of input tokens = (\d+)\n((?: +\d+\n)*)/.exec(log);
    const tokens = listed?.[2]?.trim().split(/\s+/).map(Number) ?? [];
    if (!output.endsWith("\n\n") || tokens.length === 0 || tokens.length !== Number(listed?.[1])) {
      throw new Error("llama-eval-callback's output is not whole.");
    }
    return { tokens, tensors: parse(output) };
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function capture(
  tool: string,
  flags: string[],
  path: string,
): Promise<{ output: string; log: string }> {
  const file = await open(path, "w");
  let log = "";
  try {
    const child = spawn(tool, flags, { stdio: ["ignore", file.fd, "pipe"], timeout: timeoutMs });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      log += text;
    });
    const [code, signal] = await once(child, "close");
    if (code !== 0) throw new Error(`llama-eval-callback ended with ${signal ?? code}: ${lastLine(log)}`);
  } finally {
    await file.close();
  }
  return { output: await readFile(path, "utf8"), log };
}

function lastLine(log: string): string {
  return log.trim().split("\n").at(-1) ?? "";
}

function parse(output: string): PrintedTensor[] {
  const tensors: PrintedTensor[] = [];
  let current: (PrintedTensor & { rows: number[] }) | undefined;
  for (const line of output.split("\n")) {
    const head = /^common_debug_cb_eval: +(.+?) = \(\w+\) .*= \{(\d+), (\d+), (\d+), (\d+)\}$/.exec(line);
    if (head) {
      const shape = head.slice(2).map(Number) as PrintedTensor["shape"];
      current = { name: head[1] ?? "", shape, values: [], sum: Number.NaN, rows: printedRows(shape) };
      continue;
    }
    if (!current) continue;
    const row = /^ {12}\[(.*)\],$/.exec(line);
    if (row) {
      const index = current.rows.shift() ?? Number.NaN;
      const numbers = (row[1] ?? "").split(",").filter((text) => !text.includes("..."));
      const columns = printed(current.shape[0]);
      numbers.forEach((text, i) => {
        current?.values.push({ row: index, column: columns[i] ?? Number.NaN, value: Number(text) });
      });
    }
    const sum = /^ {4}sum = (\S+)$/.exec(line);
    if (sum) {
      const { rows: _, ...tensor } = current;
      tensors.push({ ...tensor, sum: Number(sum[1]) });
      current = undefined;
    }
  }
  return tensors;
}

/** Indices that are printed of a dimension of that size. */
function printed(size: number): number[] {
  const all = Array.from({ length: size }, (_, i) => i);
  return size > 2 * shown ? [...all.slice(0, shown), ...all.slice(-shown)] : all;
}

function printedRows([, rows, slices, cubes]: PrintedTensor["shape"]): number[] {
  return Array.from({ length: cubes }, (_, cube) =>
    printed(slices).flatMap((slice) => printed(rows).map((row) => (cube * slices + slice) * rows + row)),
  ).flat();
}
