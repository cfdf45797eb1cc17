import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { recordResults } from "../../../scripts/docs/verification.js";
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
  "nf4",
  "encoder",
  "attribution-smollm2",
  "attribution-gemma",
];
const saved = fileURLToPath(new URL("../../../.build/verify/real.json", import.meta.url));

/**
 * Stores the figures for docs/contributing/verification/tables.md. Checks that did not run this time keep the figures of their last run on
 * this machine.
 */
export async function writeTables(ran: readonly Checked[]): Promise<void> {
  const before: Checked[] = JSON.parse(await readFile(saved, "utf8").catch(() => "[]"));
  const checked = [...ran, ...before.filter(({ name }) => ran.every((each) => each.name !== name))].sort(
    (a, b) => order.indexOf(a.name) - order.indexOf(b.name),
  );
  await mkdir(dirname(saved), { recursive: true });
  await writeFile(saved, JSON.stringify(checked));
  const head = ["Figure", "Measured", "Bound"];
  recordResults("real", {
    summary: "",
    tables: checked.map(({ name, figures }) => ({ title: name, head, rows: figures.map(row) })),
  });
}

function row(figure: Figure): string[] {
  const { what, value, bound, atLeast = false } = figure;
  const limit = `${atLeast ? "at least" : "at most"} ${shown(bound)}`;
  return [what, `${measured(value, atLeast)}${holds(figure) ? "" : " (missed)"}`, limit];
}

/** Counts as they are, shares near one to five places, distances to two digits. */
function measured(value: number, atLeast: boolean): string {
  if (atLeast && value > 0.9 && value <= 1) return value.toFixed(5);
  return Number.isInteger(value) ? `${value}` : shown(Number(value.toPrecision(2)));
}

const shown = (value: number) => (value > 0 && value < 1e-4 ? value.toExponential() : `${value}`);
