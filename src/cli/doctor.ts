import type { Command } from "commander";
import type { RpcServer } from "../models/rpc.js";
import { modelHelp, rpcHelp, rpcServers } from "./model-options.js";

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
      import("../terminal/index.js"),
      import("./download-line.js"),
      import("./output.js"),
    ]);
  const line = new ProgressLine(process.stderr);
  const found = await findings(options.model, options.rpc, downloadLine(line));
  line.clear();
  if (found.some(({ status }) => status === "problem")) process.exitCode = 1;
  if (options.json) return printJson({ findings: found });
  const canvas = canvasOf(process.stdout);
  const signs = { ok: "✓", warning: "!", problem: "✘" };
  const lines = found.flatMap(({ check, status, finding, advice }) => {
    const indent = " ".repeat(14);
    const text = wrap(finding, Math.max(20, canvas.width - indent.length));
    const [first = "", ...rest] = text;
    return [
      `${signs[status]} ${check.padEnd(12)}${first}`,
      ...rest.map((line) => indent + line),
      ...(advice === undefined
        ? []
        : wrap(`→ ${advice}`, Math.max(20, canvas.width - indent.length)).map((line) => indent + line)),
    ];
  });
  await print(lines.join("\n"));
}
