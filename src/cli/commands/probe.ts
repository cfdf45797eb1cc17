import { type Command, Option } from "commander";
import type { StoredProbe } from "../../contracts/library.js";
import { limits } from "../../contracts/limits.js";
import { liveLimits } from "../../contracts/live-limits.js";
import { integerBetween } from "../options.js";
import { figure, positionOption, registerSaved } from "../saved.js";

/**
 * `tapline probe make`, `list`, …: saved probes, for requests to a running server. `tapline probe` itself is the
 * experiment.
 */
export function registerProbes(program: Command): void {
  const probe = program.commands.find((command) => command.name() === "probe");
  if (probe === undefined) throw new Error("The probe command is not registered.");
  registerSaved<StoredProbe>(probe, {
    noun: "probe",
    makes: {
      description: "Train a probe on two lists of texts, using the running server's model, and save it.",
      positive: `texts of class 1: one per line, JSON, JSON Lines or CSV; ${liveLimits.probe_texts} to ${liveLimits.texts}`,
      negative: "texts of class 0",
      options: [
        new Option("--layer <number>", "block to read")
          .argParser(integerBetween(0, limits.layer_index))
          .makeOptionMandatory(),
        positionOption(),
      ],
      example: "tapline probe make truth --positive true.txt --negative false.txt --layer 5",
    },
    reads: "the Lab's probe-layer-<n>.npz with --layer, or .safetensors",
    writes: [".safetensors"],
    table: tableOf,
    line: ({ layer, point, model, n_embd }) =>
      `${point === "block_out" ? "" : `${point} of `}layer ${layer}, width ${n_embd}, ${model?.id ?? "any model"}`,
  });
}

function tableOf({ name, sha256, layer, point, note, ...figures }: StoredProbe): string {
  const head = ["layer", "AUROC", "shuffled"].map((cell) => cell.padStart(12)).join("");
  const row = [String(layer), figure(figures.separation), figure(figures.shuffled_separation)]
    .map((cell) => cell.padStart(12))
    .join("");
  const reads = point === "block_out" ? "" : `  ${point}`;
  return [`${name}  ${sha256.slice(0, 16)}${reads}`, head, row, ...(note === "" ? [] : [note])].join("\n");
}
