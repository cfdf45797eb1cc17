import type { Command } from "commander";
import type { RpcServer } from "../../models/rpc.js";
import { modelHelp, rpcHelp, rpcServers } from "../model-options.js";
import type { Finding } from "./doctor-checks.js";

interface DoctorOptions {
  model: string;
  rpc?: RpcServer[];
  json?: boolean;
}

/** `tapline doctor`: what a machine has and lacks, and what to do about it. */
export function registerDoctor(program: Command): void {
  program
    .command("doctor")
    .description("Check this machine: toolchain, addon, GPU, memory, disk, ports, hub, and a model.")
    .option("--model <model>", modelHelp, "demo")
    .option("--rpc <servers>", rpcHelp, rpcServers)
    .option("--json", "print the findings as JSON, for programs")
    .addHelpText(
      "after",
      "\nThe exit code is 1 when there is a problem, 0 with warnings only.\n\nExamples:\n  tapline doctor\n  tapline doctor --model owner/name:Q4_K_M",
    )
    .action(examine);
}

async function examine(options: DoctorOptions): Promise<void> {
  const [{ findings }, { canvasOf, ProgressLine, wrap }, { downloadLine }, { print, printJson }] =
    await Promise.all([
      import("./doctor-checks.js"),
      import("../../terminal/index.js"),
      import("../download-line.js"),
      import("../output.js"),
    ]);
  const line = new ProgressLine(process.stderr);
  const found = await findings(options.model, options.rpc, downloadLine(line));
  line.clear();
  if (found.some(({ status }) => status === "problem")) process.exitCode = 1;
  if (options.json) return printJson({ findings: found });
  await print(findingLines(found, canvasOf(process.stdout).width, wrap).join("\n"));
}

const signs = { ok: "✓", warning: "!", problem: "✘" };

/** Findings as a person reads them, each with what to do below it. @param wrap the terminal's */
export function findingLines(
  found: readonly Finding[],
  width: number,
  wrap: (text: string, columns: number) => string[],
): string[] {
  const indent = " ".repeat(14);
  const room = Math.max(20, width - indent.length);
  return found.flatMap(({ check, status, finding, advice }) => {
    const [first = "", ...rest] = wrap(finding, room);
    const below = [...rest, ...(advice === undefined ? [] : wrap(`→ ${advice}`, room))];
    return [`${signs[status]} ${check.padEnd(12)}${first}`, ...below.map((line) => indent + line)];
  });
}
