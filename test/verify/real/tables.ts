import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { holds } from "../figures.js";
import type { Figure } from "../numerics/check.js";

export interface Checked {
  name: string;
  figures: Figure[];
}

const order = [
  "transformers",
  "transformer-lens",
  "nnsight",
  "gemma",
  "directions",
  "saelens",
  "quantised",
  "encoder",
];
const page = fileURLToPath(new URL("../../../docs/verification.md", import.meta.url));
const [begin, end] = ["<!-- real: begin -->", "<!-- real: end -->"];

const kept = fileURLToPath(new URL("../../../.build/verify/real.json", import.meta.url));

/**
 * Puts the figures into docs/verification.md, between its two marks. Checks that did not run this time keep the figures of
 * their last run on this machine.
 */
export async function writeTables(ran: readonly Checked[]): Promise<void> {
  const before: Checked[] = JSON.parse(await readFile(kept, "utf8").catch(() => "[]"));
  const checked = [...ran, ...before.filter(({ name }) => ran.every((each) => each.name !== name))].sort(
    (a, b) => order.indexOf(a.name) - order.indexOf(b.name),
  );
  await mkdir(dirname(kept), { recursive: true });
  await writeFile(kept, JSON.stringify(checked));
  const text = await readFile(page, "utf8");
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${page} lacks the marks ${begin} and ${end}.`);
  const tables = checked.map(
    ({ name, figures }) =>
      `**${name}**\n\n| Figure | Measured | Bound |\n| --- | --- | --- |\n${figures.map(line).join("\n")}\n`,
  );
  await writeFile(page, `${text.slice(0, from + begin.length)}\n${tables.join("\n")}${text.slice(to)}`);
}

function line(figure: Figure): string {
  const { what, value, bound, atLeast = false } = figure;
  const limit = `${atLeast ? "at least" : "at most"} ${shown(bound)}`;
  return `| ${what} | ${measured(value, atLeast)}${holds(figure) ? "" : " (missed)"} | ${limit} |`;
}

/** Counts as they are, shares near one to five places, distances to two digits. */
function measured(value: number, atLeast: boolean): string {
  if (atLeast && value > 0.9 && value <= 1) return value.toFixed(5);
  return Number.isInteger(value) ? `${value}` : shown(Number(value.toPrecision(2)));
}

const shown = (value: number) => (value > 0 && value < 1e-4 ? value.toExponential() : `${value}`);
