import type { Command } from "commander";
import { UsageError } from "./exit-code.js";
import { labOption, usualLab } from "./service-address.js";

const jobId = /^[0-9a-f]{32}$/;

interface RmOptions {
  lab?: string;
}

/** `tapline rm`: what a name stands for decides what is removed. */
export function registerRm(program: Command): void {
  program
    .command("rm")
    .description("Remove finished jobs with their artifacts. Downloaded copies stay.")
    .argument("<what...>", "ids of jobs (32 hexadecimal characters)")
    .addOption(labOption())
    .addHelpText(
      "after",
      `
Examples:
  tapline rm 0f3a6c1d9b5e4f27a8c0d1e2f3a4b5c6
  tapline jobs --json | jq -r '.jobs[] | select(.status == "failed").id' | xargs tapline rm`,
    )
    .action(remove);
}

async function remove(names: string[], options: RmOptions): Promise<void> {
  const unknown = names.find((name) => !jobId.test(name));
  if (unknown !== undefined) {
    throw new UsageError(`${unknown} is no job's id: those have 32 hexadecimal characters.`);
  }
  const { Transport } = await import("../client/transport.js");
  const http = new Transport(options.lab ?? usualLab, 10_000);
  for (const id of names) {
    await http.json(`/lab/v1/jobs/${id}`, { method: "DELETE" });
    process.stdout.write(`Job ${id} is removed.\n`);
  }
}
