import Type, { type Static } from "typebox";
import { limits } from "../../contracts/limits.js";
import { blockPoints } from "../../contracts/names.js";
import { optional } from "../../contracts/optional.js";
import { requiredInterval } from "../../contracts/result-fields.js";
import { closed } from "../../contracts/submission-fields.js";

export const ProbeGrid = Type.Object(
  {
    points: optional.Array(Type.Enum([...blockPoints]), {
      minItems: 1,
      maxItems: blockPoints.length,
      uniqueItems: true,
      description: "Points of each block. Default: `point`.",
    }),
    positions: optional.Array(Type.Integer({ minimum: -limits.token_index - 1, maximum: -1 }), {
      minItems: 1,
      maxItems: limits.probe_grid_values,
      uniqueItems: true,
      description: "Tokens of each text, counted from its end: -1 is the last one (default).",
    }),
    c: optional.Array(Type.Number({ minimum: 1e-6, maximum: 1e6 }), {
      minItems: 1,
      maxItems: limits.probe_grid_values,
      uniqueItems: true,
      description: "Inverse strengths of the L2 penalty, scikit-learn's C. Default: 1.",
    }),
  },
  {
    ...closed,
    title: "ProbeGrid",
    description:
      "One more probe for each combination of layer, point, position and C, with the same examples. Only with the last tokens' " +
      `activations, and at most ${limits.probe_cells} probes.`,
  },
);
export type ProbeGrid = Static<typeof ProbeGrid>;

export const ProbeCell = Type.Object(
  {
    layer: Type.Integer(),
    point: Type.Enum([...blockPoints]),
    position: Type.Integer(),
    c: Type.Number(),
    accuracy: Type.Number(),
    auc: Type.Number(),
    brier: Type.Number(),
    majority_accuracy: Type.Number(),
    shuffled_label_accuracy: Type.Number(),
    train_size: Type.Integer(),
    test_size: Type.Integer(),
    converged: Type.Boolean(),
    accuracy_interval: requiredInterval("95 % Wilson interval over the held-out examples."),
    auc_interval: requiredInterval("95 % interval, as in the reports."),
  },
  { title: "ProbeCell", description: "A probe of the grid; its weights are not saved." },
);
export type ProbeCell = Static<typeof ProbeCell>;
