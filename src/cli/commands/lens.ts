import type { Command } from "commander";
import type { StoredLens } from "../../contracts/library.js";
import { checkName, localCommand, registerLocal, withHub } from "../saved.js";

interface AddOptions {
  json?: boolean;
  revision?: string;
}

interface FitOptions {
  json?: boolean;
  from: string;
  model?: string;
  quiet?: boolean;
}

/** `tapline lens`: Jacobian and tuned lenses, saved by name for `tapline inspect --lens`. */
export function registerLens(program: Command): void {
  const lens = program
    .command("lens")
    .description("Manage saved Jacobian and tuned lenses: add, fit, list, show, remove.");
  localCommand(lens, "add", "Save a published lens from a local path or the hub (its weight file or folder).")
    .argument("<name>", "name: letters, digits, dots, dashes")
    .argument("<place>", "a path, owner/name/path on the hub, or demo for the embedded model's lens")
    .option("--revision <revision>", "branch, tag or commit on the hub (default: main)")
    .addHelpText(
      "after",
      `
Layouts: Jacobian lens (*_jacobian_lens.pt), tuned lens (params.pt next to its
config.json), and tapline's own.

Examples:
  tapline lens add demo demo
  tapline lens add gpt2 \\
    neuronpedia/jacobian-lens/gpt2-small/jlens/Salesforce-wikitext
  tapline inspect "The capital of France is" --lens demo`,
    )
    .action(add);
  localCommand(lens, "fit", "Fit a lens by least squares, from each block's output to the last block's.")
    .argument("<name>", "name: letters, digits, dots, dashes")
    .requiredOption(
      "--from <folder>",
      "an extraction of every token's activations, including the last block's",
    )
    .option("--model <model>", "the model used for the extraction (default: demo)")
    .option("--quiet", "hide progress")
    .addHelpText(
      "after",
      `
Every tenth text is held out, to compare the lens with the logit lens.

Examples:
  tapline extract --data texts.txt --layers 0-7 --out rows
  tapline lens fit mine --from rows
  tapline inspect "The capital of France is" --lens mine`,
    )
    .action(fit);
  registerLocal<StoredLens>(lens, { noun: "lens", plural: "lenses", open, line, picture });
}

async function open() {
  const [{ Lenses }, { taplineHome }] = await Promise.all([
    import("../../library/lenses.js"),
    import("../../files/home.js"),
  ]);
  return new Lenses(taplineHome());
}

async function add(name: string, place: string, { revision, json }: AddOptions): Promise<void> {
  await checkName(name);
  const [lenses, { lensPlace }, { print, printJson }] = await Promise.all([
    open(),
    import("../../models/resolve.js"),
    import("../output.js"),
  ]);
  const stored = await withHub(revision, (fromHub) => lenses.add(name, lensPlace(place), fromHub));
  if (stored === undefined) return;
  return json ? printJson(stored) : print(picture(stored));
}

async function fit(name: string, options: FitOptions): Promise<void> {
  await checkName(name);
  const { stoppable, endBy } = await import("../stop-signal.js");
  const signal = stoppable();
  const [
    lenses,
    { fitLens },
    { openExtraction },
    { resolveModel },
    { Model },
    { print, printJson },
    terminal,
  ] = await Promise.all([
    open(),
    import("../../lab/training/lens.js"),
    import("../../lab/extraction/open-extraction.js"),
    import("../../models/resolve.js"),
    import("../../native/index.js"),
    import("../output.js"),
    import("../../terminal/index.js"),
  ]);
  const progress = new terminal.JobProgress(options.quiet ? { write: () => {} } : process.stderr);
  const extraction = await openExtraction(options.from);
  const { path } = await resolveModel(options.model ?? "demo");
  const model = await Model.open(path);
  try {
    const stored = await fitLens({
      extraction,
      model,
      path,
      lenses,
      name,
      signal,
      progress: (now) => progress.show({ status: "running", progress: now }),
    });
    progress.clear();
    await (options.json ? printJson(stored) : print(picture(stored)));
  } catch (error) {
    progress.clear();
    if (signal.aborted) return endBy(signal.reason);
    throw error;
  } finally {
    await model.close();
  }
}

function line({ kind, layers, n_embd, layout }: StoredLens): string {
  return `${kind}, blocks ${blocksOf(layers)}, width ${n_embd} (${layout})`;
}

/** `0-6` if consecutive, otherwise the full list. */
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
    `reads the output of block ${blocksOf(layers)}${trained_on === null ? "" : ` of ${trained_on}`}` +
      `${texts === null ? "" : `, fitted on ${texts} texts`}`,
    ...(fit === null
      ? []
      : [
          "KL to the model's output on held-out tokens:",
          ...[["block", "lens", "logit lens"], ...fit.map(figures)].map((cells) =>
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
