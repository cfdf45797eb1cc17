import { type Command, Option } from "commander";
import type { StoredVector } from "../../contracts/library.js";
import { liveLimits, vectorFormats } from "../../contracts/live-limits.js";
import { UsageError } from "../exit-code.js";
import { type AddOptions, figure, positionOption, registerKept } from "../kept.js";
import { choice, layerList } from "../options.js";

/** `tapline vector`: directions by name, made on a running server's model, for its requests. */
export function registerVector(program: Command): void {
  const vector = program
    .command("vector")
    .description("Directions by name: make, list, show, add, export, remove.");
  registerKept<StoredVector>(vector, {
    noun: "vector",
    makes: {
      description: "Make a direction from two lists of texts on the model that serves.",
      positive: `texts, one a line, or JSON, JSON Lines, CSV; at most ${liveLimits.texts}`,
      negative: "texts on the other side",
      options: [
        new Option("--layers <list>", `up to ${liveLimits.layers} blocks as 4,5`)
          .argParser(layerList)
          .makeOptionMandatory(),
        positionOption(),
        choice(
          "--method <name>",
          "difference of means (default), or the first component of paired differences",
          ["difference", "pca"],
        ),
      ],
      example: "tapline vector make polite --positive polite.txt --negative blunt.txt \\\n    --layers 4,5",
    },
    reads: ".safetensors, .npz, a control vector's .gguf, or with --format another project's .pt",
    addOptions: [
      choice(
        "--format <whose>",
        "what the rows of a .pt file are; --layer then counts as that project does",
        vectorFormats,
      ),
      new Option("--entry <name>", "which vector of a capping file"),
    ],
    claims: refusalLayer,
    writes: [".safetensors", ".gguf for llama.cpp's --control-vector"],
    table: tableOf,
    line: ({ layers, model, n_embd }) =>
      `layers ${layers.map(({ layer }) => layer).join(",")}, width ${n_embd}, ${model?.id ?? "any model"}`,
  });
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
