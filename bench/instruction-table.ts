import { readdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Row } from "./figures.js";
import { instructionSets, resultName } from "./instructions.js";

const page = fileURLToPath(new URL("../docs/benchmarks.md", import.meta.url));
const results = fileURLToPath(new URL("./results/", import.meta.url));

/** The rows that a suite's table has, and their names there. */
const shown: Readonly<Record<string, (name: string) => string | undefined>> = {
  // The name says how long the plain pass took, too.
  capture: (name) =>
    name.startsWith("0.5B") ? name.replace(/(: over a plain pass) of .* ms$/, "$1") : undefined,
  forward: (name) => name,
  live: (name) => name,
  peers: (name) => name,
};

interface Result {
  date: string;
  machine: { processor: string };
  rows: Row[];
}

/**
 * Puts a suite's figures with goals into docs/benchmarks.md, between the suite's marks: a column per instruction set, from all
 * results on processors.
 */
export async function writeSetsTable(suite: string): Promise<void> {
  const title = shown[suite];
  if (title === undefined) return;
  const text = await readFile(page, "utf8");
  const [begin, end] = [`<!-- ${suite} by instructions: begin -->`, `<!-- ${suite} by instructions: end -->`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${page} lacks the marks ${begin} and ${end}.`);
  const table = setsTable(await resultsOf(suite), title);
  await writeFile(page, `${text.slice(0, from + begin.length)}\n${table}${text.slice(to)}`);
}

/** A Markdown table of rows with goals, whose columns are the results. */
export function setsTable(
  found: ReadonlyMap<string, Result>,
  title: (name: string) => string | undefined,
): string {
  const lines = new Map<string, Map<string, Row>>();
  for (const [set, { rows }] of found) {
    for (const row of rows) {
      const name = row.goal === undefined ? undefined : title(row.name);
      if (name !== undefined) lines.set(name, (lines.get(name) ?? new Map()).set(set, row));
    }
  }
  const sets = [...found.keys()];
  const head = ["Figure", "Goal", ...sets.map((set) => `${set}, ${machineOf(found.get(set) as Result)}`)];
  const body = [...lines].map(([name, cells]) => {
    const [{ unit, goal = "" }] = [...cells.values()] as [Row];
    return [`${name}${units[unit] ?? ""}`, goal, ...sets.map((set) => cell(cells.get(set)))];
  });
  return [head, head.map(() => "---"), ...body].map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}

/** Ratios have none. */
const units: Readonly<Record<string, string>> = { ms: " (ms)", "/s": " (per second)" };

const machineOf = ({ machine, date }: Result) =>
  `${machine.processor.replace(/\(R\)|\(TM\)/g, "")}, ${date.slice(0, 10)}`;

function cell(row: Row | undefined): string {
  if (row === undefined) return "";
  const short = (value: number) => (Math.abs(value) < 1000 ? value.toPrecision(3) : value.toFixed(0));
  const range = row.spread[0] === row.spread[1] ? "" : ` (${row.spread.map(short).join(" to ")})`;
  return `${short(row.value)}${range}${row.ok ? "" : ", missed"}`;
}

/** By the instruction set's name, the best first. */
async function resultsOf(suite: string): Promise<Map<string, Result>> {
  const names = await readdir(results);
  const found = new Map<string, Result>();
  for (const here of instructionSets) {
    const file = resultName({ suite, backend: "cpu", here });
    if (names.includes(file)) found.set(here.name, JSON.parse(await readFile(`${results}${file}`, "utf8")));
  }
  return found;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const suite of Object.keys(shown)) await writeSetsTable(suite);
}
