import type { Command } from "commander";
import type { RpcServer } from "../../models/rpc.js";
import { modelHelp, rpcHelp, rpcServers } from "../model-options.js";
import type { Finding } from "./doctor-checks.js";

interface DoctorOptions {
  model: string;
  rpc?: RpcServer[];
  json?: boolean;
}

/** `tapline doctor`: checks a machine and suggests fixes. */
export function registerDoctor(program: Command): void {
  program
    .command("doctor")
    .description("Check this machine: toolchain, addon, GPU, memory, disk, ports, hub, and a model.")
    .option("--model <model>", modelHelp, "demo")
    .option("--rpc <servers>", rpcHelp, rpcServers)
    .option("--json", "print the findings as JSON")
    .addHelpText(
      "after",
      "\nThe exit code is 1 if there is a problem, and 0 if there are only warnings.\n\nExamples:\n  tapline doctor\n  tapline doctor --model owner/name:Q4_K_M",
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

/** Findings as text, each followed by its advice. @param wrap the terminal's line wrapping */
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
