/**
 * The addon of `npm run release` that this machine would take against the one that is compiled for it: a prompt of 128
 * tokens, then 16 tokens one by one, of the same model, alternately in two processes that both keep it open.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { addonFiles } from "../src/native/index.js";
import { type ReleasedLevel, releasedLevels } from "../test/support/released.js";
import { type Row, row } from "./figures.js";
import { randomModel } from "./models/random-model.js";

const passes = fileURLToPath(new URL("./levels-passes.ts", import.meta.url));
const types = ["q8_0", "f16"] as const;
/** The lowest level needs up to thirty times the time of the native build. */
const roundsOfAll = 3;

export async function benchLevels({ quick, rounds }: { quick: boolean; rounds?: number }): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "tapline-levels-"));
  const rows: Row[] = [];
  try {
    const native = addonFiles().files[0]!;
    if (native.variant !== "compiled here")
      throw new Error("Nothing to compare with: run `npm run build:native`.");
    // All that the processor can run, for information; the first is the one that is taken.
    const released = releasedLevels(folder).slice(0, quick ? 1 : undefined);
    for (const type of types) {
      const model = await randomModel(type);
      const processes = [{ path: native.path, level: "" }, ...released].map((each) => start(each, model));
      const times = await alternately(processes, rounds ?? (quick ? 2 : 30));
      for (const what of ["prompt", "tokens"] as const) {
        for (const [i, { level }] of released.entries()) {
          const ratios = times[i + 1]![what].map((ms, round) => times[0]![what][round]! / ms);
          const name = `${type}, ${what === "prompt" ? "prompt of 128" : "token by token"}: ${level}`;
          rows.push(row(name, ratios, "x native", i === 0 ? { least: 0.98 } : {}));
        }
      }
      for (const process of processes) process.kill();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return rows;
}

interface Times {
  prompt: number[];
  tokens: number[];
}

function start({ path, level }: ReleasedLevel, model: string): ChildProcess {
  const env = { ...process.env, TAPLINE_ADDON: path, TAPLINE_LEVEL: level };
  return fork(passes, [model], {
    execArgv: ["--import", "tsx"],
    env,
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
}

/**
 * Each round asks the native process and the best level once, the first rounds all; the order turns, so that what one leaves
 * warm does not always help the same.
 */
async function alternately(processes: ChildProcess[], rounds: number): Promise<Times[]> {
  const times = processes.map((): Times => ({ prompt: [], tokens: [] }));
  for (let round = -1; round < rounds; round++) {
    const { length } = round < roundsOfAll ? processes : processes.slice(0, 2);
    const order = Array.from({ length }, (_, i) => (i + round + 1) % length);
    for (const i of order) {
      processes[i]!.send("pass");
      const [answer] = (await once(processes[i]!, "message")) as [{ prompt: number; tokens: number }];
      if (round < 0) continue; // the first opens the model
      times[i]!.prompt.push(answer.prompt);
      times[i]!.tokens.push(answer.tokens);
    }
  }
  return times;
}
