import { type Command, Option } from "commander";
import type { StoredProbe } from "../../contracts/library.js";
import { limits } from "../../contracts/limits.js";
import { liveLimits } from "../../contracts/live-limits.js";
import { figure, keptTools, makeTimeoutMs, registerKept } from "../kept.js";
import { integerBetween } from "../options.js";
import { type ServerOptions, serverCommand } from "../server-command.js";

interface MakeOptions extends ServerOptions {
  positive: string;
  negative: string;
  layer: number;
  position?: "last" | "mean";
}

/**
 * `tapline probe make`, `list`, …: probes by name, for the requests of a running server. `tapline probe` itself is the
 * experiment.
 */
export function registerProbes(program: Command): void {
  const probe = program.commands.find((command) => command.name() === "probe");
  if (probe === undefined) throw new Error("There is no command probe to add to.");
  serverCommand(probe, "make", "Train a probe on two lists of texts on the model that serves, and keep it.")
    .argument("<name>", "letters, digits, dots, dashes")
    .requiredOption(
      "--positive <file>",
      `texts that score 1, one a line, or JSON, JSON Lines, CSV; ${liveLimits.probe_texts} to ${liveLimits.texts}`,
    )
    .requiredOption("--negative <file>", "texts that score 0")
    .requiredOption("--layer <number>", "block that it reads", integerBetween(0, limits.layer_index))
    .addOption(
      new Option("--position <which>", "state of each text (default: last)").choices(["last", "mean"]),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  tapline probe make truth --positive true.txt --negative false.txt --layer 5",
    )
    .action(make);
  registerKept<StoredProbe>(probe, {
    noun: "probe",
    reads: "the Lab's probe-layer-<n>.npz with --layer, or .safetensors",
    writes: [".safetensors"],
    table: tableOf,
    line: ({ layer, point, model, n_embd }) =>
      `${point === "block_out" ? "" : `${point} of `}layer ${layer}, width ${n_embd}, ${model?.id ?? "any model"}`,
  });
}

async function make(name: string, options: MakeOptions): Promise<void> {
  const { readPrompts } = await import("../input-files.js");
  const { http, ...out } = await keptTools(options, makeTimeoutMs);
  const { layer, position } = options;
  const body = {
    name,
    layer,
    positive: await readPrompts(options.positive),
    negative: await readPrompts(options.negative),
    ...(position && { position }),
  };
  const made = await http.json<StoredProbe>("/lab/probes", { method: "POST", body });
  return options.json ? out.printJson(made) : out.print(tableOf(made));
}

function tableOf({ name, sha256, layer, point, note, ...figures }: StoredProbe): string {
  const head = ["layer", "AUROC", "shuffled"].map((cell) => cell.padStart(12)).join("");
  const row = [String(layer), figure(figures.separation), figure(figures.shuffled_separation)]
    .map((cell) => cell.padStart(12))
    .join("");
  const reads = point === "block_out" ? "" : `  ${point}`;
  return [`${name}  ${sha256.slice(0, 16)}${reads}`, head, row, ...(note === "" ? [] : [note])].join("\n");
}
