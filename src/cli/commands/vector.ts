import { type Command, Option } from "commander";
import type { StoredVector } from "../../contracts/library.js";
import { liveLimits, vectorFormats } from "../../contracts/live-limits.js";
import { UsageError } from "../exit-code.js";
import { choice, layerList } from "../options.js";
import { type AddOptions, figure, positionOption, registerSaved } from "../saved.js";

/** `tapline vector`: steering vectors, made with a running server's model, for its requests. */
export function registerVector(program: Command): void {
  const vector = program
    .command("vector")
    .description("Manage saved steering vectors: make, list, show, add, export, remove.");
  registerSaved<StoredVector>(vector, {
    noun: "vector",
    makes: {
      description: "Make a steering vector from two lists of texts, using the running server's model.",
      positive: `texts to steer towards: one per line, JSON, JSON Lines or CSV; at most ${liveLimits.texts}`,
      negative: "texts to steer away from",
      options: [
        new Option("--layers <list>", `up to ${liveLimits.layers} blocks, such as 4,5`)
          .argParser(layerList)
          .makeOptionMandatory(),
        positionOption(),
        choice(
          "--method <name>",
          "difference of means (default), or first principal component of paired differences",
          ["difference", "pca"],
        ),
      ],
      example: "tapline vector make polite --positive polite.txt --negative blunt.txt \\\n    --layers 4,5",
    },
    reads: ".safetensors, .npz, a control vector's .gguf, or, with --format, another project's .pt",
    addOptions: [
      choice(
        "--format <whose>",
        "project that wrote the .pt file; --layer then uses its numbering",
        vectorFormats,
      ),
      new Option("--entry <name>", "name of the vector in a capping file"),
    ],
    claims: refusalLayer,
    writes: [".safetensors", ".gguf for llama.cpp's --control-vector"],
    table: tableOf,
    line: ({ layers, model, n_embd }) =>
      `layers ${layers.map(({ layer }) => layer).join(",")}, width ${n_embd}, ${model?.id ?? "any model"}`,
  });
}

/** The layer of a refusal direction is in a metadata file next to it. */
async function refusalLayer(file: string, options: AddOptions): Promise<AddOptions> {
  if (options.format !== "refusal" || options.layer !== undefined) return options;
  const [{ readFile }, { dirname, join }] = await Promise.all([
    import("node:fs/promises"),
    import("node:path"),
  ]);
  const text = await readFile(join(dirname(file), "direction_metadata.json"), "utf8").catch(() => "null");
  let metadata: { layer?: unknown } | null;
  try {
    metadata = JSON.parse(text);
  } catch {
    throw new UsageError("direction_metadata.json is not valid JSON; use --layer.");
  }
  const layer = metadata?.layer;
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
  const head = ["layer", "norm", "relative", "AUROC", "shuffled"].map((cell) => cell.padStart(12)).join("");
  return [`${name}  ${sha256.slice(0, 16)}`, head, ...rows, ...(note === "" ? [] : [note])].join("\n");
}
