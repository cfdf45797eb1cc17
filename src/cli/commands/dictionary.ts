import type { Command } from "commander";
import type { StoredDictionary } from "../../contracts/library.js";
import { limits } from "../../contracts/limits.js";
import { type BlockPoint, blockPoints } from "../../contracts/names.js";
import { choice, integerBetween } from "../options.js";
import { checkName, localCommand, registerLocal, withHub } from "../saved.js";

interface AddOptions {
  json?: boolean;
  layer?: number;
  point?: BlockPoint;
  k?: number;
  revision?: string;
}

/** `tapline dictionary`: published sparse dictionaries, saved by name for `tapline features` and `compare`. */
export function registerDictionary(program: Command): void {
  const dictionary = program
    .command("dictionary")
    .description("Manage saved sparse dictionaries (SAEs): add, list, show, remove.");
  localCommand(
    dictionary,
    "add",
    "Save a published dictionary from a local path or the hub (its folder or weight file), or all of a transcoder set.",
  )
    .argument("<name>", "name: letters, digits, dots, dashes")
    .argument("<place>", "a path, or owner/name/folder on the hub")
    .option(
      "--layer <number>",
      "block it was trained on, if its files do not record one",
      integerBetween(0, limits.layer_index),
    )
    .addOption(
      choice(
        "--point <point>",
        "hook point it was trained on, if its files do not record one (default: block_out)",
        blockPoints,
      ),
    )
    .option(
      "--k <number>",
      "number of active features (TopK), if its files do not record it",
      integerBetween(1, limits.feature_index),
    )
    .option("--revision <revision>", "branch, tag or commit on the hub (default: main)")
    .addHelpText(
      "after",
      `
Layouts: SAELens, Gemma Scope 1 and 2, Llama Scope, sparsify,
dictionary_learning, Qwen-Scope, Goodfire, and files written by tapline sae.
A folder with layer_0.safetensors, layer_1.safetensors, … or with several layers
of tapline sae is a set: its transcoders are saved as NAME-0, NAME-1, …

Examples:
  tapline dictionary add mine tapline-sae-1a2b3c4d/sae-layer-5.safetensors
  tapline dictionary add gemma --layer 20 \\
    google/gemma-scope-2b-pt-res/layer_20/width_16k/average_l0_71`,
    )
    .action(add);
  registerLocal<StoredDictionary>(dictionary, {
    noun: "dictionary",
    plural: "dictionaries",
    open,
    line: ({ features, n_embd, layer, point, activation, layout }) =>
      `${point === "block_out" ? "" : `${point} of `}block ${layer}, ${features} features, width ${n_embd}, ${activation} (${layout})`,
    picture,
  });
}

async function open() {
  const [{ Dictionaries }, { taplineHome }] = await Promise.all([
    import("../../library/index.js"),
    import("../../files/home.js"),
  ]);
  return new Dictionaries(taplineHome());
}

async function add(
  name: string,
  place: string,
  { layer, point, k, revision, json }: AddOptions,
): Promise<void> {
  await checkName(name);
  const [dictionaries, { print, printJson }, { addSet, setAt }] = await Promise.all([
    open(),
    import("../output.js"),
    import("../../library/index.js"),
  ]);
  const stored = await withHub(revision, async (fromHub) => {
    const set = layer === undefined ? await setAt(place, fromHub) : undefined;
    if (set !== undefined) return addSet(dictionaries, name, place, set, { fromHub });
    return [await dictionaries.add(name, place, { layer, point, k }, fromHub)];
  });
  if (stored === undefined) return;
  const [first] = stored as [StoredDictionary, ...StoredDictionary[]];
  if (stored.length === 1) return json ? printJson(first) : print(picture(first));
  if (json) return printJson({ dictionaries: stored });
  const blocks = stored.map((one) => one.layer).join(", ");
  return print(
    `${name}: ${stored.length} dictionaries, ${first.name} to ${stored.at(-1)?.name}, of blocks ${blocks}\n${picture(first)}`,
  );
}

function picture(stored: StoredDictionary): string {
  const {
    name,
    sha256,
    features,
    n_embd,
    layer,
    point,
    activation,
    k,
    layout,
    hook,
    writes,
    hook_out,
    skip,
    trained_on,
    notes,
    source,
  } = stored;
  return [
    `${name}  ${sha256.slice(0, 16)}`,
    `${features} features of ${n_embd} values, ${activation}${k === null ? "" : ` (k = ${k})`}, from ${layout}`,
    `reads ${point === "block_out" ? "the output" : point} of block ${layer}${hook === null ? "" : ` (${hook})`}${trained_on === null ? "" : ` of ${trained_on}`}`,
    ...(writes === undefined
      ? []
      : [
          `a transcoder${skip ? " with a skip connection" : ""}: writes ${writes} of block ${layer}${hook_out === undefined ? "" : ` (${hook_out})`}`,
        ]),
    ...(source == null ? [] : [`from ${source}`]),
    ...notes,
  ].join("\n");
}
