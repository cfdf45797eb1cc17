import { resolve } from "node:path";
import type { Command } from "commander";

/** `tapline merge`: the parts of an extraction, experiment or card become the files of one. */
export function registerMerge(program: Command): void {
  program
    .command("merge")
    .description(
      "Merge the parts of an extraction, experiment or card into the files that one machine would have written.",
    )
    .argument("<folder>", "folder of all parts, as --shard writes them")
    .requiredOption("--out <folder>", "folder of the merged files, created if its parent exists")
    .option("--json", "print the result as JSON")
    .option("--quiet", "hide progress")
    .addHelpText(
      "after",
      `
Parts that are missing, unfinished or of another experiment are refused by name.
The parts stay; an interrupted merge resumes.

Examples:
  tapline merge parts --out rows`,
    )
    .action(merge);
}

async function merge(
  folder: string,
  options: { out: string; json?: boolean; quiet?: boolean },
): Promise<void> {
  const { hasCardParts } = await import("../../card/parts.js");
  if (await hasCardParts(resolve(folder))) return mergeCardParts(resolve(folder), options);
  const { hasParts } = await import("../../lab/parts/part-file.js");
  if (await hasParts(resolve(folder))) {
    const { mergeParts } = await import("../../lab/parts/merge.js");
    const merged = await mergeParts(resolve(folder), resolve(options.out));
    const { mergedLine } = await import("../submit.js");
    const { print, printJson } = await import("../output.js");
    return options.json ? printJson(merged) : print(mergedLine(merged));
  }
  const [{ mergeExtraction }, { print, printJson }, { mergedLine }, { withProgress }] = await Promise.all([
    import("../../lab/extraction/merge.js"),
    import("../output.js"),
    import("../submit.js"),
    import("../with-progress.js"),
  ]);
  await withProgress(
    options,
    (progress, signal) =>
      mergeExtraction(resolve(folder), resolve(options.out), {
        signal,
        onTokens: (done, total) =>
          progress.show({ status: "running", progress: { stage: "merging", done, total } }),
      }),
    (merged) => (options.json ? printJson(merged) : print(mergedLine(merged))),
  );
}

async function mergeCardParts(folder: string, { out, json }: { out: string; json?: boolean }): Promise<void> {
  const [{ mergeCard }, { writeCard }, { cardPicture }, { print, printJson }] = await Promise.all([
    import("../../card/parts.js"),
    import("../../card/files.js"),
    import("../../card/picture.js"),
    import("../output.js"),
  ]);
  const { card } = await mergeCard(folder);
  const page = await writeCard(out, card);
  await (json ? printJson(card) : print(`${cardPicture(card)}\n\n${page}`));
}
