import type { AnswerToken, Candidate, Turn, TurnAnswer } from "../wire.js";
import { entropyOf } from "./shades.js";
import type { Numbers } from "./views/picture.js";

type Cell = string | number | null;

/** All data of an answer, one row per token. */
export function answerNumbers({ layers, dictionary }: Turn, { tokens }: TurnAnswer): Numbers {
  const probes = [...new Set(tokens.flatMap((token) => Object.keys(token.probes ?? {})))];
  const head = [
    ...["token", "id", "text", "part", "probability", "entropy (lower bound, bits)"],
    ...probes.map((name) => `probe ${name}`),
    ...layers.flatMap((layer) => [
      `norm at layer ${layer}`,
      `lens at layer ${layer}`,
      `lens probability at layer ${layer}`,
    ]),
    ...(dictionary === undefined ? [] : [`strongest feature of ${dictionary.name}`, "feature activation"]),
  ];
  const rows = tokens.map((token, at): Cell[] => [
    ...[at, token.id ?? null, token.text, partOf(token)],
    ...[token.probability ?? null, entropyOf(token) ?? null],
    ...probes.map((name) => token.probes?.[name] ?? null),
    ...layers.flatMap((_, index): Cell[] => {
      const [top] = token.lens?.[index] ?? [];
      return [finite(token.norms?.[index]), top?.token ?? null, top?.probability ?? null];
    }),
    ...(dictionary === undefined
      ? []
      : [token.features?.[0]?.feature ?? null, token.features?.[0]?.activation ?? null]),
  ]);
  return { head, rows };
}

/** All data of one token: its alternatives, and what was measured at the position that produced it. */
export function insideNumbers({ layers, dictionary }: Turn, token: AnswerToken): Numbers {
  const { candidates = [], lens = [], norms = [], probes = {}, features = [] } = token;
  const ranked = (kind: string, layer: number | null, all: Candidate[]): Cell[][] =>
    all.map((one, rank) => [kind, layer, rank + 1, one.token_id, one.token, one.probability]);
  const rows: Cell[][] = [
    ...ranked("candidate", null, candidates),
    ...layers.flatMap((layer, index) => ranked("lens", layer, lens[index] ?? [])),
    ...norms.map((norm, index): Cell[] => ["norm", layers[index] ?? null, null, null, null, finite(norm)]),
    ...Object.entries(probes).map(([name, score]): Cell[] => ["probe", null, null, null, name, score]),
    ...features.map(({ feature, activation }, rank): Cell[] => [
      ...["feature", dictionary?.layer ?? null, rank + 1, feature, dictionary?.name ?? null, activation],
    ]),
  ];
  return { head: ["kind", "layer", "rank", "id", "token or name", "value"], rows };
}

function partOf({ thinking, special }: AnswerToken): string {
  if (special === true) return "special";
  return thinking === true ? "thinking" : "answer";
}

function finite(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}
