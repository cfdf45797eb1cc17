/**
 * What an NVIDIA card has to show, in one command: `npm run gpu`. Builds the addon for the card at hand, then runs the suite, the
 * twin and the benchmarks on it, each within ten minutes. Continues after a failed step; exits with 1 if one failed.
 *   --rehearse       the same on pretend GPUs (test/support/pretend-gpu), which compute on the processor; writes no results
 *   --short          a rehearsal of about a minute
 *   --only PATTERN   steps whose name matches this regular expression
 */
import { spawn } from "node:child_process";
import { parseArgs } from "node:util";
import { smolLm2Form } from "../../bench/models/sets.js";
import { pretendGpu } from "../support/pretend-gpu/index.js";
import { findCard } from "./gpu/card.js";
import { cardSteps, rehearsalSteps, type Step } from "./gpu/steps.js";

const limitSeconds = 600;
const { values } = parseArgs({
  options: {
    rehearse: { type: "boolean", default: false },
    short: { type: "boolean", default: false },
    only: { type: "string", default: "" },
  },
});

/** @returns the exit status; undefined if the step took too long and was ended */
async function run({ command: [program = "", ...args], env }: Step): Promise<number | undefined> {
  const child = spawn(program, args, { stdio: "inherit", env: { ...process.env, ...env }, detached: true });
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  }, limitSeconds * 1000);
  const code = await new Promise<number>((resolve, reject) => {
    child.on("error", reject).on("close", (status) => resolve(status ?? 1));
  });
  clearTimeout(timer);
  return late ? undefined : code;
}

async function main(): Promise<void> {
  let steps: Step[];
  if (values.rehearse || values.short) {
    console.log("Rehearsal on a pretend GPU: figures say nothing about a card.");
    steps = rehearsalSteps(values.short, { ...(await pretendGpu("1x4096")) });
  } else {
    const card = findCard();
    console.log(`${card.name}, compute capability ${card.capability}`);
    steps = cardSteps(card, process.env.TAPLINE_CMAKE_OPTIONS ?? "");
  }
  if (!values.short && smolLm2Form() === undefined) {
    console.log("SmolLM2 is not prepared (`npm run real:models`), so its figures are left out.");
  }
  const pattern = new RegExp(values.only);
  const chosen = steps.filter(({ name }) => pattern.test(name));
  if (chosen.length === 0)
    throw new Error(`--only: no step matches; there are ${steps.map(({ name }) => name).join(", ")}.`);
  const told: string[] = [];
  let failed = 0;
  for (const step of chosen) {
    console.log(`\n--- ${step.name}: ${step.command.join(" ")}`);
    const started = Date.now();
    const code = await run(step);
    const verdict =
      code === undefined
        ? `took longer than ${limitSeconds} s`
        : code === 0
          ? "passed"
          : `FAILED (exit ${code})`;
    if (code !== 0) failed++;
    told.push(`${step.name.padEnd(16)}${verdict} in ${Math.round((Date.now() - started) / 1000)} s`);
    // Nothing after it would run on the card.
    if (step.name === "build" && code !== 0) break;
  }
  console.log(`\n${told.join("\n")}`);
  console.log(`${chosen.length - failed} passed, ${failed} failed`);
  if (failed > 0) process.exitCode = 1;
}

try {
  await main();
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
