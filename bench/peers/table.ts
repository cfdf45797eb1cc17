import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Row } from "../figures.js";

const page = fileURLToPath(new URL("../../docs/benchmarks.md", import.meta.url));
const [begin, end] = ["<!-- peers: begin -->", "<!-- peers: end -->"];
const sides = ["transformers", "TransformerLens", "nnsight", "interp-engine", "tapline F32", "tapline Q8_0"];
const ratios = ["F32 over the best peer", "Q8_0 over the best peer"];

/** Puts the figures of the suite peers into docs/benchmarks.md, between its two marks: a line a task. */
export async function writePeersTable(rows: readonly Row[]): Promise<void> {
  const tasks = new Map<string, Map<string, Row>>();
  for (const each of rows) {
    const at = each.name.lastIndexOf(": ");
    const columns = tasks.get(each.name.slice(0, at)) ?? new Map<string, Row>();
    tasks.set(each.name.slice(0, at), columns.set(each.name.slice(at + 2), each));
  }
  const head = ["Task", ...sides, "F32 over best", "Q8_0 over best"];
  const lines = [head, head.map(() => "---")];
  for (const [task, columns] of tasks) {
    lines.push([
      task,
      ...sides.map((side) => figure(columns.get(side))),
      ...ratios.map((name) => ratio(columns.get(name))),
    ]);
  }
  const table = lines.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
  const text = await readFile(page, "utf8");
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${page} lacks the marks ${begin} and ${end}.`);
  await writeFile(page, `${text.slice(0, from + begin.length)}\n${table}${text.slice(to)}`);
}

function figure(row: Row | undefined): string {
  if (row === undefined) return "";
  const { value, unit, rounds } = row;
  const fewer = rounds === undefined ? "" : ` (${rounds === 1 ? "one round" : `${rounds} rounds`})`;
  return unit.endsWith("s") && value < 1
    ? `${(1000 * value).toPrecision(3)} ${unit.replace(/s$/, "ms")}${fewer}`
    : `${short(value)} ${unit}${fewer}`;
}

function ratio(row: Row | undefined): string {
  if (row === undefined) return "";
  const [least, most] = row.spread;
  const range = least === most ? "" : ` (${short(least)} to ${short(most)})`;
  return `${short(row.value)}${range}, goal ${row.goal?.replace(">= ", "")}${row.ok ? "" : ", missed"}`;
}

function short(value: number): string {
  return value >= 100
    ? value.toFixed(0)
    : value
        .toPrecision(3)
        .replace(/(\.\d*?)0+$/, "$1")
        .replace(/\.$/, "");
}
