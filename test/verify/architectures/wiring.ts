import type { Table } from "../../../scripts/docs/verification.js";
import { readWeightPlaces } from "../../../src/models/gguf-header.js";
import type { Outcome } from "./report.js";

/** Wiring that an attribution graph has to follow, by name, and what it means. */
export const wirings = {
  "grouped queries": "several query heads share a key and value head",
  "fused QKV": "one matrix makes queries, keys and values",
  biases: "of values or of the attention's output",
  sinks: "part of the attention goes to a learned logit instead of a token",
  windows: "attention to a limited number of earlier tokens in some blocks",
  "post-norms": "a norm is applied to a half's output before it is added",
  "scaled residuals": "a half's output is scaled before it is added",
  "parallel blocks": "attention and MLP read the same input",
} as const;

export type Wiring = keyof typeof wirings;

/** The wiring of a model as its file shows it; `form` has what is proven in its graph. */
export async function wiringOf(path: string, form: readonly string[]): Promise<Wiring[]> {
  const { metadata, weights } = await readWeightPlaces([path]);
  const has = (end: string) => [...weights.keys()].some((name) => name.endsWith(end));
  const outputs = (end: string) => {
    const found = [...weights].find(([name]) => name.endsWith(end));
    return found?.[1].shape[1] ?? 0;
  };
  const number = (end: string) => {
    const found = [...metadata].find(([key]) => key.endsWith(end));
    return typeof found?.[1] === "number" ? found[1] : 0;
  };
  const [heads, shared] = [number(".attention.head_count"), number(".attention.head_count_kv")];
  const is: Record<Wiring, boolean> = {
    "grouped queries":
      (heads > 0 && shared > 0 && shared < heads) ||
      (outputs(".attn_k.weight") > 0 && outputs(".attn_k.weight") < outputs(".attn_q.weight")),
    "fused QKV": has(".attn_qkv.weight"),
    biases: [".attn_v.bias", ".attn_qkv.bias", ".attn_output.bias"].some(has),
    sinks: has(".attn_sinks.weight"),
    windows: number(".attention.sliding_window") > 0,
    "post-norms": form.includes("normed"),
    "scaled residuals": form.includes("scaled"),
    "parallel blocks": form.includes("parallel"),
  };
  return (Object.keys(wirings) as Wiring[]).filter((wiring) => is[wiring]);
}

/** The worst of the sums of each model's graph, of neurons and heads or of features. */
function sumsOf(outcomes: readonly Outcome[], key: "graph" | "replaced"): { model: string; value: number }[] {
  return outcomes.flatMap(({ model, verdict, report }) => {
    const value = report?.checks.find(({ name }) => name === "attribution")?.measured?.[key];
    return verdict === "holds" && value !== undefined ? [{ model, value }] : [];
  });
}

/** Not in llama.cpp's test models; in SmolLM2, Gemma 3 and the models of verify:circuit-tracer. */
const elsewhere: readonly Wiring[] = ["grouped queries"];

/** Wirings that no model covers whose graph of features closes. */
export function uncovered(outcomes: readonly Outcome[]): Wiring[] {
  return (Object.keys(wirings) as Wiring[]).filter(
    (wiring) => !elsewhere.includes(wiring) && sumsOf(having(outcomes, wiring), "replaced").length === 0,
  );
}

const having = (outcomes: readonly Outcome[], wiring: Wiring) =>
  outcomes.filter(({ report }) => report?.wiring?.includes(wiring));

/** For each wiring the models whose graphs close, and how exactly; and the reasons of models without a graph. */
export function graphTables(outcomes: readonly Outcome[]): Table[] {
  const cell = (found: ReturnType<typeof sumsOf>) =>
    found.length === 0
      ? "0"
      : `${found.length}, to ${Math.max(...found.map(({ value }) => value)).toExponential(1)}`;
  const line = (name: string, some: readonly Outcome[]) => {
    const features = sumsOf(some, "replaced");
    const names = features.slice(0, 6).map(({ model }) => `\`${model}\``);
    const more = features.length > names.length ? ` and ${features.length - names.length} more` : "";
    return [name, cell(features), cell(sumsOf(some, "graph")), `${names.join(", ")}${more}`];
  };
  const rows = (Object.keys(wirings) as Wiring[]).map((wiring) =>
    line(`${wiring}: ${wirings[wiring]}`, having(outcomes, wiring)),
  );
  const reasons = new Map<string, string[]>();
  for (const { model, verdict, report } of outcomes) {
    const note = report?.checks.find(({ name }) => name === "attribution")?.note;
    if (verdict !== "holds" || note === undefined) continue;
    const reason = note.replace(/^The architecture '[^']+' /, "");
    reasons.set(reason, [...(reasons.get(reason) ?? []), `\`${model}\``]);
  }
  return [
    {
      title: "Sums of attribution graphs",
      head: ["Wiring", "Features of random transcoders", "Neurons and heads", "Models"],
      rows: [line("all", outcomes), ...rows],
    },
    {
      title: "No attribution graph",
      head: ["Reason", "Models"],
      rows: [...reasons].map(([reason, models]) => [reason, models.join(", ")]),
    },
  ];
}
