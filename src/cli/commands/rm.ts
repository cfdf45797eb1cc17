import type { Command } from "commander";
import { UsageError } from "../exit-code.js";
import { labOption, usualLab } from "../service-address.js";

const jobId = /^[0-9a-f]{32}$/;

interface RmOptions {
  lab?: string;
}

/** `tapline rm`: removes jobs or cached models. */
export function registerRm(program: Command): void {
  program
    .command("rm")
    .description("Delete finished jobs with their artifacts (downloaded copies stay), or cached models.")
    .argument("<what...>", "job ids (32 hexadecimal characters), or hub models")
    .addOption(labOption())
    .addHelpText(
      "after",
      `
Examples:
  tapline rm 0f3a6c1d9b5e4f27a8c0d1e2f3a4b5c6
  tapline rm owner/name owner/name:Q8_0 owner/name/file.gguf
  tapline jobs --json | jq -r '.jobs[] | select(.status == "failed").id' |
    xargs tapline rm`,
    )
    .action(remove);
}

async function remove(names: string[], options: RmOptions): Promise<void> {
  const unknown = names.find((name) => !jobId.test(name) && !name.includes("/"));
  if (unknown !== undefined) {
    throw new UsageError(
      `${unknown} is neither a job id (32 hexadecimal characters) nor a hub model (owner/name).`,
    );
  }
  for (const name of names) {
    if (jobId.test(name)) await removeJob(name, options.lab);
    else await removeModel(name);
  }
}

async function removeJob(id: string, lab: string | undefined): Promise<void> {
  const { Transport } = await import("../../client/transport.js");
  await new Transport(lab ?? usualLab, 10_000, { service: "lab" }).json(`/lab/v1/jobs/${id}`, {
    method: "DELETE",
  });
  process.stdout.write(`Deleted job ${id}.\n`);
}

async function removeModel(name: string): Promise<void> {
  const [{ removeCached }, { bytes }] = await Promise.all([
    import("../../models/hub/cached.js"),
    import("../../terminal/index.js"),
  ]);
  const { removed, freed } = await removeCached(name);
  for (const each of removed) process.stdout.write(`Deleted ${each}.\n`);
  process.stdout.write(`Freed ${bytes(freed)}.\n`);
}
