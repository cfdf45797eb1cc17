import { measured } from "../card/measure.js";
import type { GraphResult } from "../contracts/index.js";
import { mean } from "../findings/numbers.js";
import type { Measured } from "../findings/uncertainty.js";
import type { CircuitPrompt, Circuits } from "./result.js";

type Graph = Pick<GraphResult, "nodes" | "scores">;

/**
 * One prompt's pruned graph in a form, compared with the reference's. A circuit's nodes are neurons and attention heads, each
 * at one token; embeddings are the same in both by construction.
 */
export function comparedGraphs(reference: Graph, form: Graph): Omit<CircuitPrompt, "prompt" | "target"> {
  const [one, two] = [influences(reference), influences(form)];
  const union = [...new Set([...one.keys(), ...two.keys()])];
  const both = union.filter((node) => one.has(node) && two.has(node)).length;
  return {
    nodes: [one.size, two.size],
    overlap: union.length === 0 ? null : both / union.length,
    rank: spearman(
      union.map((node) => one.get(node) ?? 0),
      union.map((node) => two.get(node) ?? 0),
    ),
    rounding: [reference.scores.rounding, form.scores.rounding],
    error: [1 - reference.scores.replacement, 1 - form.scores.replacement],
  };
}

/** Means over prompts with bootstrap intervals; prompts without nodes or without different influences do not count. */
export function circuitFigures(prompts: readonly CircuitPrompt[], seed: number): Circuits {
  const over = (of: (prompt: CircuitPrompt) => number | null): Measured | null => {
    const values = prompts.map(of).filter((value) => value !== null);
    if (values.length === 0) return null;
    const { value, low, high } = measured({ values }, undefined, seed);
    return { value, low, high };
  };
  const pair = (of: (prompt: CircuitPrompt) => [number, number]) =>
    [over((prompt) => of(prompt)[0]), over((prompt) => of(prompt)[1])] as [Measured, Measured];
  return {
    nodes: [mean(prompts.map(({ nodes }) => nodes[0])), mean(prompts.map(({ nodes }) => nodes[1]))],
    overlap: over(({ overlap }) => overlap),
    rank: over(({ rank }) => rank),
    rounding: pair(({ rounding }) => rounding),
    error: pair(({ error }) => error),
    prompts: [...prompts],
  };
}

/** The influence of each neuron and head, by its place. */
function influences({ nodes }: Graph): Map<string, number> {
  const circuit = nodes.filter(({ kind }) => kind === "neuron" || kind === "head");
  return new Map(
    circuit.map(({ kind, layer, position, index, influence }) => [
      [kind, layer, position, index].join(" "),
      influence,
    ]),
  );
}

/** Spearman's rank correlation: Pearson's of the ranks, ties sharing their mean rank; null if either does not vary. */
export function spearman(one: readonly number[], two: readonly number[]): number | null {
  const [a, b] = [ranks(one), ranks(two)];
  const middle = (one.length + 1) / 2;
  let [products, first, second] = [0, 0, 0];
  for (const [place, rank] of a.entries()) {
    const [x, y] = [rank - middle, (b[place] as number) - middle];
    products += x * y;
    first += x * x;
    second += y * y;
  }
  return first === 0 || second === 0 ? null : products / Math.sqrt(first * second);
}

function ranks(values: readonly number[]): number[] {
  const order = [...values.keys()].sort((a, b) => (values[a] as number) - (values[b] as number));
  const found = new Array<number>(values.length);
  for (let from = 0; from < order.length; ) {
    const value = values[order[from] as number];
    let to = from;
    while (to < order.length && values[order[to] as number] === value) to++;
    for (let at = from; at < to; at++) found[order[at] as number] = (from + 1 + to) / 2;
    from = to;
  }
  return found;
}
