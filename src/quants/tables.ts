import type { Quants } from "./result.js";
import { cautionsOf, columnsOf, findingOf, rowsOf, storageText } from "./words.js";

const cellText = (text: string) => text.replaceAll("|", "\\|").replaceAll("\n", " ");

/** A table for a model card, in Markdown, with its notes. */
export function quantsMarkdown(quants: Quants): string {
  const columns = columnsOf(quants);
  const line = (cells: string[]) => `| ${cells.map(cellText).join(" | ")} |`;
  const rows = rowsOf(quants).map((row) =>
    line([
      row.name,
      ...columns.map(({ of }) => {
        const found = of(row);
        if (found === undefined) return "";
        return found.interval === undefined ? found.value : `${found.value} (${found.interval})`;
      }),
    ]),
  );
  const { machine, tapline, settings, sha256 } = quants;
  return [
    line(["Form", ...columns.map(({ head }) => head)]),
    line(["---", ...columns.map(() => "---:")]),
    ...rows,
    "",
    `${findingOf(quants).join(" ")} ${cautionsOf(quants)[0]}`,
    "",
    ...rowsOf(quants).map((row) => `- ${row.name}: \`${row.file}\`, ${storageText(row)}.`),
    "",
    `Measured by tapline ${tapline} on ${settings.texts} texts, ${machine.processor}, ${machine.threads} threads, llama.cpp ${machine.llama_cpp}. SHA-256 of the result: \`${sha256}\`.`,
    "",
  ].join("\n");
}

/** The same for a terminal: a line per form, without intervals. */
export function quantsPicture(quants: Quants): string {
  const columns = columnsOf(quants);
  const rows = [
    ["", ...columns.map(({ head }) => head)],
    ...rowsOf(quants).map((row) => [row.name, ...columns.map(({ of }) => of(row)?.value ?? "–")]),
  ];
  // A column of a form's figures per line, because a terminal is narrow and forms are few.
  const turned = (rows[0] as string[]).map((_, column) => rows.map((row) => row[column] as string));
  const widths = rows.map((_, at) => Math.max(...turned.map((line) => (line[at] as string).length)));
  const lines = turned.map((line) =>
    line
      .map((text, at) => (at === 0 ? text.padEnd(widths[0] as number) : text.padStart(widths[at] as number)))
      .join("  ")
      .trimEnd(),
  );
  return [...findingOf(quants), "", ...lines].join("\n");
}
