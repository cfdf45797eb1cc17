import { type Command, Option } from "commander";
import type { StoredVector } from "../../contracts/library.js";
import { liveLimits, vectorFormats } from "../../contracts/live-limits.js";
import { UsageError } from "../exit-code.js";
import { type AddOptions, figure, keptTools, makeTimeoutMs, registerKept } from "../kept.js";
import { layerList } from "../options.js";
import { type ServerOptions, serverCommand } from "../server-command.js";

interface MakeOptions extends ServerOptions {
  positive: string;
  negative: string;
  layers: number[];
  position?: "last" | "mean";
  method?: "difference" | "pca";
}

/** `tapline vector`: directions by name, made on a running server's model, for its requests. */
export function registerVector(program: Command): void {
  const vector = program
    .command("vector")
    .description("Directions by name: make, list, show, add, export, remove.");
  serverCommand(vector, "make", "Make a direction from two lists of texts on the model that serves.")
    .argument("<name>", "letters, digits, dots, dashes")
    .requiredOption(
      "--positive <file>",
      `texts, one a line, or JSON, JSON Lines, CSV; at most ${liveLimits.texts}`,
    )
    .requiredOption("--negative <file>", "texts on the other side")
    .requiredOption("--layers <list>", `up to ${liveLimits.layers} blocks as 4,5`, layerList)
    .addOption(
      new Option("--position <which>", "state of each text (default: last)").choices(["last", "mean"]),
    )
    .addOption(
      new Option(
        "--method <name>",
        "difference of means (default), or the first component of paired differences",
      ).choices(["difference", "pca"]),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  tapline vector make polite --positive polite.txt --negative blunt.txt \\\n    --layers 4,5",
    )
    .action(make);
  registerKept<StoredVector>(vector, {
    noun: "vector",
    reads: ".safetensors, .npz, a control vector's .gguf, or with --format another project's .pt",
    addOptions: [
      new Option(
        "--format <whose>",
        "what the rows of a .pt file are; --layer then counts as that project does",
      ).choices([...vectorFormats]),
      new Option("--entry <name>", "which vector of a capping file"),
    ],
    claims: refusalLayer,
    writes: [".safetensors", ".gguf for llama.cpp's --control-vector"],
    table: tableOf,
    line: ({ layers, model, n_embd }) =>
      `layers ${layers.map(({ layer }) => layer).join(",")}, width ${n_embd}, ${model?.id ?? "any model"}`,
  });
}

async function make(name: string, options: MakeOptions): Promise<void> {
  const { readPrompts } = await import("../input-files.js");
  const { http, ...out } = await keptTools(options, makeTimeoutMs);
  const { position, method, layers } = options;
  const body = {
    name,
    layers,
    positive: await readPrompts(options.positive),
    negative: await readPrompts(options.negative),
    ...(position && { position }),
    ...(method && { method }),
  };
  const made = await http.json<StoredVector>("/lab/vectors", { method: "POST", body });
  return options.json ? out.printJson(made) : out.print(tableOf(made));
}

/** A refusal direction's layer stands in a file beside it. */
async function refusalLayer(file: string, options: AddOptions): Promise<AddOptions> {
  if (options.format !== "refusal" || options.layer !== undefined) return options;
  const [{ readFile }, { dirname, join }] = await Promise.all([
    import("node:fs/promises"),
    import("node:path"),
  ]);
  const text = await readFile(join(dirname(file), "direction_metadata.json"), "utf8").catch(() => "null");
  let said: { layer?: unknown } | null;
  try {
    said = JSON.parse(text);
  } catch {
    throw new UsageError("direction_metadata.json is no JSON; say --layer.");
  }
  const layer = said?.layer;
  return Number.isInteger(layer) ? { ...options, layer: layer as number } : options;
}

function tableOf({ name, sha256, layers, note }: StoredVector): string {
  const rows = layers.map(({ layer, length, typical_row: row, separation, shuffled_separation: shuffled }) =>
    [
      String(layer),
      figure(length, 2),
      row === undefined ? "-" : `${((100 * length) / row).toFixed(1)} %`,
      figure(separation),
      figure(shuffled),
    ]
      .map((cell) => cell.padStart(12))
      .join(""),
  );
  const head = ["layer", "length", "of a row", "AUROC", "shuffled"].map((cell) => cell.padStart(12)).join("");
  return [`${name}  ${sha256.slice(0, 16)}`, head, ...rows, ...(note === "" ? [] : [note])].join("\n");
}
