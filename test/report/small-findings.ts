/** Small results, and what reports say of them. */

import type { Figure } from "../../src/findings/figure.js";
import { doseGrid } from "../../src/operations/compare/figures-dose-grid.js";
import { attentionHead } from "../../src/operations/inspect/figures-attention-head.js";
import { lens } from "../../src/operations/inspect/figures-lens.js";
import { growingPatchMap } from "../../src/operations/patch_sweep/figures-growth.js";
import { findingsOf } from "../../src/report/index.js";
import type { Findings } from "../../src/report/parts.js";
import { separation } from "../../src/report/separation.js";
import {
  artefacts,
  change,
  compared,
  drifted,
  extracted,
  features,
  intervals,
  page,
  probe,
  probeReport,
  routing,
  sae,
  saeReport,
  trial,
} from "../terminal/results.js";

const findings = (operation: string, result: object) => findingsOf({ operation, result } as never);
const only = (...parts: Figure[]): Findings => ({ summary: [], cautions: [], parts });
const head = (layer: number, head: number, more: object = {}) => ({
  layer,
  head,
  previous: 0.5,
  first: 0.25,
  own: 0.125,
  induction: null,
  last: [
    { position: 1, weight: 0.75 },
    { position: 0, weight: 0.25 },
  ],
  ...more,
});
export const inspected = {
  tokens: ["The", " cat"],
  token_ids: [1, 2],
  layers: [0, 3].map((layer) => ({
    layer,
    norms: [100, 2.5 + layer],
    predictions: [0, 1].map((token) => [
      { token_id: layer + token, token: ` t${layer + token}`, probability: 0.5 + layer / 10 },
      { token_id: 9, token: " other", probability: 0.125 },
    ]),
  })),
  points: [{ layer: 0, point: "attn_out", norms: [1, 2] }],
  attention: [head(0, 1), head(0, 2, { previous: 0.002 }), head(3, 1, { induction: 0.75 })],
  routing,
  decomposition: {
    target_token: " t4",
    target_token_id: 4,
    logit: 7.5,
    sum: 7.5,
    embedding: 1,
    constant: -0.5,
    blocks: [
      { layer: 0, attention: 2, mlp: 1 },
      { layer: 1, attention: 0.5, mlp: -0.25 },
    ],
  },
  next_tokens: [
    { token_id: 4, token: " t4", probability: 0.875 },
    { token_id: 9, token: " other", probability: 0.00005 },
  ],
};
const training = (...least: number[]) => ({
  densities: least.map((one, i) => ({ least: one, features: 10 - i })),
});
const tried = (layer: number, strength: number, delta: number, control?: number) =>
  trial(
    "p",
    strength,
    0.5 + delta,
    delta === 0 ? " a b c" : " x",
    control === undefined
      ? { layer }
      : { layer, control: { probability: 0.5 + control, delta: control, output: " a b c" } },
  );
export const saidCases: [name: string, made: () => Findings][] = [
  ["drift", () => findings("drift", { ...drifted, ...artefacts })],
  [
    "drift-bare",
    () =>
      findings("drift", {
        ...drifted,
        texts: 1,
        tokens: 1,
        dictionary: { name: "d", layer: 1, point: "mid", jaccard: null, loss_recovered: null },
      }),
  ],
  ["extract", () => findings("extract", { ...extracted, layers: [2, 5], index: "index.json" })],
  [
    "extract-plan",
    () =>
      findings("extract", {
        ...extracted,
        layers: [2],
        index: null,
        shard: [2, 3],
        cut_texts: 4,
        tokens_per_second: 1234.5,
        texts: 1,
        rows: "last",
      }),
  ],
  ["features", () => findings("features", features)],
  [
    "features-pages",
    () =>
      findings("features", {
        ...features,
        point: "mid",
        texts: features.texts.slice(0, 1),
        features: [],
        fidelity: { ...features.fidelity, explained_variance: null, loss_recovered: null, tokens: 1 },
        pages: [
          page,
          {
            ...page,
            feature: 1,
            label: undefined,
            histogram: [],
            groups: [],
            raised: [],
            lowered: page.raised,
          },
        ],
      }),
  ],
  ["inspect", () => findings("inspect", inspected)],
  ["sae", () => findings("sae", sae(saeReport(5), saeReport(2, { explained_variance: null })))],
  [
    "sae-batches",
    () =>
      findings("sae", sae(saeReport(5, { training: training(0.001, 0.01), losses: [{ step: 0, loss: 0 }] }))),
  ],
  ["probe", () => findings("probe", probe(probeReport(5, 0.875, intervals)))],
  [
    "probe-two",
    () => findings("probe", probe(probeReport(5, 0.875), probeReport(2, 0.5, { converged: false }))),
  ],
  [
    "compare",
    () =>
      findings("compare", {
        ...compared(
          trial("Where?", 2, 0.625, " x", change(3)),
          trial("Where?", -2, 0.25, " a b d", change(0.5)),
          trial("Where?", 0, 0.5, " a b c", change(0)),
        ),
        position: "last token",
      }),
  ],
  [
    "compare-two",
    () =>
      findings("compare", {
        ...compared(
          ...["One?", "Two?"].flatMap((prompt, i) =>
            [1, 2].map((strength) =>
              trial(prompt, strength, 0.25 * strength - 0.125 * i, strength === 1 ? " a b c" : "", {
                control: { probability: 0.0625 * strength },
              }),
            ),
          ),
        ),
        intervention: "scale",
        layers: [1, 2],
        position: "every token",
      }),
  ],
  [
    "compare-control",
    () =>
      findings("compare", {
        ...compared(trial("Where?", 2, 0.625, " x", { control: { probability: 0.4375 } })),
        position: "last token",
      }),
  ],
  [
    "dose-grid",
    () =>
      only(
        ...doseGrid([
          {
            layer: 5,
            strengths: [2, 0],
            result: compared(tried(5, 0, 0, 0), tried(5, 2, 0.25, -0.125)) as never,
          },
          { layer: 3, strengths: [1] },
        ]),
      ),
  ],
  [
    "dose-grid-bare",
    () => only(...doseGrid([{ layer: 5, strengths: [0], result: compared(tried(5, 0, 0)) as never }])),
  ],
  [
    "separation",
    () =>
      only(
        separation("calm", [
          {
            layer: 4,
            separation: 0.9375,
            shuffled_separation: 0.5,
            projections: { positive: [1, 2, 13], negative: [-11, 1] },
          },
          { layer: 5, separation: null, projections: { positive: [1], negative: [1] } },
          { layer: 6 },
        ] as never)!,
      ),
  ],
  [
    "attention-head",
    () =>
      only(
        attentionHead({
          layer: 2,
          head: 3,
          tokens: ["a", "b"],
          weights: [
            [1, 0],
            [0.004, 0.996],
          ],
        }),
      ),
  ],
  [
    "lenses",
    () => {
      const { layers, ...rest } = inspected;
      const divergences = [
        [0.5, 0.25],
        [0.125, 0.0625],
      ];
      return only(
        ...lens({
          ...{ ...rest, target_token: " t4", lens: { name: "tuned", kind: "tuned" } },
          layers: layers.map((layer, at) => ({
            ...layer,
            divergences: divergences[at],
            target: [
              { rank: 12, probability: 0.015625 },
              { rank: 1, probability: 0.5 },
            ],
            // Where the lens says nothing of how far it is, it is in no line.
            translated: { predictions: layer.predictions, ...(at === 1 && { divergences: divergences[1] }) },
          })),
        } as never),
      );
    },
  ],
  [
    "growing",
    () =>
      only(
        growingPatchMap({
          pair: 0,
          pairs: 2,
          layers: [1, 3],
          points: ["block_out"],
          positions: [0, 1],
          clean: ["a", " b"],
          corrupted: ["a", " c"],
          recovery: [0.5, null, -0.25, 1],
        } as never),
      ),
  ],
];
