import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Values } from "../values.js";
import type { Figure } from "./check.js";
import { runPython } from "./python.js";

/** What attribution graphs are compared with: rows in float32, edges in float64, and cases that refer to both. */
export class EdgeCases {
  readonly values = new Values();
  readonly #numbers: number[] = [];

  /** Stores numbers. @returns the place of the first */
  place(list: Iterable<number>): number {
    const at = this.#numbers.length;
    for (const value of list) this.#numbers.push(value);
    return at;
  }

  /** Writes everything into the folder, and runs a program on it. @returns its figures by name */
  async compare(
    python: string,
    script: URL,
    folder: string,
    cases: { model: string; prompts: readonly object[] },
  ): Promise<Record<string, number>> {
    await writeFile(join(folder, "values.f32"), this.values.bytes());
    await writeFile(join(folder, "edges.f64"), Buffer.from(Float64Array.from(this.#numbers).buffer));
    await writeFile(join(folder, "cases.json"), JSON.stringify(cases));
    return (await runPython(python, script, [folder])) as Record<string, number>;
  }
}

/** @param residual of the sums in float32 */
export function edgeFigures(worst: Record<string, number>, residual: number): Figure[] {
  return [
    { what: "edges that were compared", value: worst.edges!, bound: 3000, atLeast: true },
    {
      what: "in float64: relative difference, worst edge (of less than a thousandth of its row: over that)",
      value: worst.precise!,
      bound: 1e-6,
    },
    {
      what: "in float32: greatest difference, over the largest edge of its row",
      value: worst.plain!,
      bound: 1e-5,
    },
    { what: "values of nodes: relative difference", value: worst.values!, bound: 1e-6 },
    { what: "sums in float32: relative difference from the value", value: residual, bound: 1e-5 },
  ];
}
