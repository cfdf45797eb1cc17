import { type Command, InvalidArgumentError, Option } from "commander";
import { limits } from "../contracts/limits.js";
import { engineNames } from "../contracts/names.js";
import { collect, integerBetween } from "./options.js";
import type { SubmitOptions } from "./submit.js";

export interface PartOptions extends Partial<SubmitOptions> {
  shard?: [number, number];
}

/** Names of the options below, which are not fields of a submission, except `shard` of an extraction. */
export const ofSubmit = ["submit", "parts", "workers", "devices", "sbatch", "dryRun"] as const;

/** Options of experiments that can be divided between machines. @param shard help of --shard */
export function partOptions(command: Command, shard: string): Command {
  return command
    .option("--shard <i/n>", shard, partOf)
    .addOption(
      new Option(
        "--submit <engine>",
        "compute it in --parts parts that run outside of this command, follow them, repeat what fails, and merge their files",
      ).choices([...engineNames]),
    )
    .option("--parts <number>", "with --submit: number of parts", integerBetween(2, limits.extract_parts))
    .option(
      "--workers <number>",
      "with --submit: most parts at once (default: one per device with local, all with slurm)",
      integerBetween(1, limits.extract_parts),
    )
    .option(
      "--devices <list>",
      "with --submit local: CUDA devices of its workers, such as 0,1,2,3",
      (text: string) => text.split(",").map((device) => device.trim()),
    )
    .option(
      "--sbatch <option>",
      "with --submit slurm: an option of sbatch, such as --sbatch=--gres=gpu:1; repeatable",
      collect,
    )
    .option("--dry-run", "with --submit: print the script and start nothing");
}

/** A part and the number of parts. */
export function partOf(text: string): [number, number] {
  const [, index, count] = /^(\d+)\/(\d+)$/.exec(text) ?? [];
  if (index === undefined)
    throw new InvalidArgumentError("Write the part and the number of parts, such as 0/8.");
  return [Number(index), Number(count)];
}
