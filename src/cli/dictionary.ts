import type { Command } from "commander";
import type { StoredDictionary } from "../contracts/library.js";
import { limits } from "../contracts/limits.js";
import { liveLimits, namePattern } from "../contracts/live-limits.js";
import { UsageError } from "./exit-code.js";
import { integerBetween } from "./options.js";
import { stopSignal } from "./stop-signal.js";

interface DictionaryOptions {
  json?: boolean;
}

interface AddOptions extends DictionaryOptions {
  layer?: number;
  k?: number;
  revision?: string;
}

/** `tapline dictionary`: published sparse dictionaries, kept by name for `tapline features` and `compare`. */
export function registerDictionary(program: Command): void {
  const dictionary = program
    .command("dictionary")
    .description("Sparse dictionaries by name: add a published one, list, show, remove.");
  const command = (name: string, description: string) =>
    dictionary.command(name).description(description).option("--json", "print it as JSON, for programs");

  command("add", "Keep a published dictionary: its folder or file of weights, here or on the hub.")
    .argument("<name>", "letters, digits, dots, dashes")
    .argument("<place>", "a path, or owner/name/folder of the hub")
    .option(
      "--layer <number>",
      "block whose output it reads, where its files do not say",
      integerBetween(0, limits.layer_index),
    )
    .option(
      "--k <number>",
      "features that stay active, where its files do not say",
      integerBetween(1, limits.feature_index),
    )
    .option("--revision <revision>", "branch, tag or commit of the hub (default: main)")
    .addHelpText(
      "after",
      `
Layouts: SAELens, Gemma Scope 1 and 2, Llama Scope, sparsify,
dictionary_learning, Qwen-Scope, Goodfire, and what tapline sae writes.

Examples:
  tapline dictionary add mine tapline-sae-1a2b3c4d/sae-layer-5.safetensors
  tapline dictionary add gemma --layer 20 \\
    google/gemma-scope-2b-pt-res/layer_20/width_16k/average_l0_71`,
    )
    .action(add);
  command("list", "List the dictionaries that are kept.").action(list);
  command("show", "Show one dictionary: what it reads, how, from where.").argument("<name>").action(show);
  command("rm", "Forget a dictionary.").argument("<name>").action(remove);
}

async function tools() {
  const [{ Dictionaries }, { taplineHome }, { print, printJson }] = await Promise.all([
    import("../library/index.js"),
    import("../files/home.js"),
    import("./output.js"),
  ]);
  return { dictionaries: new Dictionaries(taplineHome()), print, printJson };
}

async function add(name: string, place: string, options: AddOptions): Promise<void> {
  const most = liveLimits.name_characters;
  if (!new RegExp(namePattern).test(name) || name.length > most) {
    throw new UsageError(
      `A name has up to ${most} letters, digits, dots, dashes, got ${JSON.stringify(name)}.`,
    );
  }
  const stopped = stopSignal();
  const [{ dictionaries, print, printJson }, { resolveHubPlace }, { downloading }] = await Promise.all([
    tools(),
    import("../models/hub/index.js"),
    import("./download-line.js"),
  ]);
  const { layer, k, revision, json } = options;
  const stored = await downloading(stopped, "add", (download) =>
    dictionaries.add(name, place, { layer, k }, (asked, choose) =>
      resolveHubPlace(asked, choose, { ...download, ...(revision !== undefined && { revision }) }),
    ),
  );
  if (stored === undefined) return;
  return json ? printJson(stored) : print(picture(stored));
}

async function list({ json }: DictionaryOptions): Promise<void> {
  const { dictionaries, print, printJson } = await tools();
  const all = await dictionaries.list();
  if (json) return printJson({ dictionaries: all });
  const lines = all.map(
    ({ name, features, n_embd, layer, point, activation, layout }) =>
      `${name.padEnd(24)} ${point === "block_out" ? "" : `${point} of `}block ${layer}, ${features} features, width ${n_embd}, ${activation} (${layout})`,
  );
  return print(
    lines.length === 0
      ? "There are no dictionaries yet; tapline dictionary add keeps one."
      : lines.join("\n"),
  );
}

async function show(name: string, { json }: DictionaryOptions): Promise<void> {
  const { dictionaries, print, printJson } = await tools();
  const stored = await dictionaries.get(name);
  return json ? printJson(stored) : print(picture(stored));
}

async function remove(name: string, { json }: DictionaryOptions): Promise<void> {
  const { dictionaries, print, printJson } = await tools();
  if (!(await dictionaries.remove(name))) throw new UsageError(`There is no dictionary named ${name}.`);
  return json ? printJson({ deleted: true }) : print(`${name} is forgotten.`);
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
    trained_on,
    notes,
    source,
  } = stored;
  return [
    `${name}  ${sha256.slice(0, 16)}`,
    `${features} features of ${n_embd} values, ${activation}${k === null ? "" : ` (k = ${k})`}, from ${layout}`,
    `reads ${point === "block_out" ? "the output" : point} of block ${layer}${hook === null ? "" : ` (${hook})`}${trained_on === null ? "" : ` of ${trained_on}`}`,
    ...(source == null ? [] : [`from ${source}`]),
    ...notes,
  ].join("\n");
}
