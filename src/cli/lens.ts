import type { Command } from "commander";
import type { StoredLens } from "../contracts/library.js";
import { checkName, hereCommand, registerKeptHere, withHub } from "./kept-here.js";

interface AddOptions {
  json?: boolean;
  revision?: string;
}

/** `tapline lens`: lenses that translate, kept by name for `tapline inspect --lens`. */
export function registerLens(program: Command): void {
  const lens = program
    .command("lens")
    .description("Jacobian and tuned lenses by name: add a published one, list, show, remove.");
  hereCommand(lens, "add", "Keep a lens: its file of weights or the folder of it, here or on the hub.")
    .argument("<name>", "letters, digits, dots, dashes")
    .argument("<place>", "a path, owner/name/path of the hub, or demo: the embedded model's")
    .option("--revision <revision>", "branch, tag or commit of the hub (default: main)")
    .addHelpText(
      "after",
      `
Layouts: Jacobian lens (*_jacobian_lens.pt), tuned lens (params.pt beside its
config.json), and tapline's own.

Examples:
  tapline lens add demo demo
  tapline lens add gpt2 \\
    neuronpedia/jacobian-lens/gpt2-small/jlens/Salesforce-wikitext
  tapline inspect "The capital of France is" --lens demo`,
    )
    .action(add);
  registerKeptHere<StoredLens>(lens, { noun: "lens", plural: "lenses", open, line, picture });
}

async function open() {
  const [{ Lenses }, { taplineHome }] = await Promise.all([
    import("../library/lenses.js"),
    import("../files/home.js"),
  ]);
  return new Lenses(taplineHome());
}

async function add(name: string, place: string, { revision, json }: AddOptions): Promise<void> {
  await checkName(name);
  const [lenses, { lensPlace }, { print, printJson }] = await Promise.all([
    open(),
    import("../models/resolve.js"),
    import("./output.js"),
  ]);
  const stored = await withHub(revision, (fromHub) => lenses.add(name, lensPlace(place), fromHub));
  if (stored === undefined) return;
  return json ? printJson(stored) : print(picture(stored));
}

function line({ kind, layers, n_embd, layout }: StoredLens): string {
  return `${kind}, blocks ${blocksOf(layers)}, width ${n_embd} (${layout})`;
}

/** `0-6`, or all of them where they are not consecutive. */
function blocksOf(layers: readonly number[]): string {
  const [first] = layers;
  const last = layers.at(-1);
  const gapless = layers.length > 2 && last === (first as number) + layers.length - 1;
  return gapless ? `${first}-${last}` : layers.join(", ");
}

export function picture(stored: StoredLens): string {
  const { name, sha256, kind, layers, n_embd, layout, residual, trained_on, texts, fit, notes, source } =
    stored;
  const formula = kind === "jacobian" ? "J h" : residual ? "h + W h + b" : "W h + b";
  return [
    `${name}  ${sha256.slice(0, 16)}`,
    `${kind} lens, ${formula}, of ${n_embd} values, from ${layout}`,
    `translates the output of block ${blocksOf(layers)}${trained_on === null ? "" : ` of ${trained_on}`}` +
      `${texts === null ? "" : `, fitted on ${texts} texts`}`,
    ...(fit === null
      ? []
      : [
          "KL of the model's output, on held-out tokens:",
          ...[["block", "lens", "plain lens"], ...fit.map(figures)].map((cells) =>
            cells.map((cell) => cell.padStart(12)).join(""),
          ),
        ]),
    ...(source == null ? [] : [`from ${source}`]),
    ...notes,
  ].join("\n");
}

function figures({ layer, divergence, plain_divergence }: NonNullable<StoredLens["fit"]>[number]): string[] {
  return [String(layer), divergence.toFixed(3), plain_divergence.toFixed(3)];
}
