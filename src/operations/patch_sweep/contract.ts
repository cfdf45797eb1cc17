import Type, { type Static } from "typebox";
import { InvalidInput } from "../../contracts/invalid-input.js";
import { defaults, limits } from "../../contracts/limits.js";
import { alignedPositions, changedPoints, patchDirections, spanMarks } from "../../contracts/names.js";
import { optional } from "../../contracts/optional.js";
import { notedResultFields, orNull } from "../../contracts/result-fields.js";
import {
  type CommonDefaults,
  closed,
  commonOfFeatures,
  type Filled,
  headList,
  text,
} from "../../contracts/submission-fields.js";
import type { Contract } from "../contract.js";
import { promptPairs } from "./contract-pairs.js";

const foilOrTarget = (what: string) =>
  Type.Optional(text(`Text that encodes to exactly one token, without special tokens. Default: ${what}`));

const target_token = foilOrTarget("the top token of the clean run.");

const foil_token = foilOrTarget("the top token of the corrupted run.");

const clean = text("The prompt whose answer is traced (raw text).");

const corrupted = text(
  "A counterpart with a different answer (raw text), and the same number of tokens unless spans are marked.",
);

export const PromptPair = Type.Object(
  { clean, corrupted, target_token, foil_token },
  { ...closed, title: "PromptPair" },
);
export type PromptPair = Static<typeof PromptPair>;

export const PatchSweepSubmission = Type.Object(
  {
    operation: Type.Literal("patch_sweep"),
    ...commonOfFeatures,
    clean: Type.Optional(clean),
    corrupted: Type.Optional(corrupted),
    pairs: optional.Array(PromptPair, {
      minItems: 1,
      maxItems: limits.patch_pairs,
      description:
        "Prompt pairs, instead of `clean` and `corrupted`. Results are means over the pairs, with confidence intervals.",
    }),
    target_token,
    foil_token,
    layers: optional.Array(Type.Integer({ minimum: 0, maximum: limits.layer_index }), {
      minItems: 1,
      maxItems: limits.layer_index + 1,
      uniqueItems: true,
      description: "Zero-based block indices, any number of them. Default: all blocks.",
    }),
    points: optional.Array(Type.Enum([...changedPoints]), {
      minItems: 1,
      maxItems: changedPoints.length,
      uniqueItems: true,
      default: [...defaults.patch_points],
      description:
        "Hook points to patch in each layer: block_out, its output; attn_out and ffn_out, what its attention and MLP add to " +
        "the residual stream; block_in and mid, the residual stream before each; ffn_in, what the MLP reads; head_out, the output of each head, one head " +
        "at a time. Models without one of these points are rejected.",
    }),
    heads: headList("For head_out: the heads to patch, one at a time. Default: all heads."),
    positions: optional.Union(
      [
        Type.Enum([alignedPositions]),
        Type.Array(Type.Integer({ minimum: -limits.token_index, maximum: limits.token_index }), {
          minItems: 1,
          maxItems: limits.max_input_tokens,
          uniqueItems: true,
        }),
      ],
      {
        description:
          "Token indices; negative indices count from the end, and -1 is the last token. Default: every token. Pairs of different " +
          `lengths need negative indices. Or aligned: both texts of every pair mark the same number of spans with ` +
          `${spanMarks.join(" and ")}, at most ${limits.patch_spans}, and each span's last-token activation is patched into the ` +
          "matching span. The marks are removed, and the texts may differ in length.",
      },
    ),
    direction: optional.Enum([...patchDirections], {
      default: defaults.patch_direction,
      description:
        "denoise patches activations of the clean run into the corrupted run (which are sufficient for the answer?); noise " +
        "patches activations of the corrupted run into the clean run (which are necessary?).",
    }),
    controls: optional.Boolean({
      default: defaults.patch_controls,
      description: "Also apply a norm-matched random change at each site, drawn from `seed`.",
    }),
  },
  {
    ...closed,
    title: "PatchSweepSubmission",
    description:
      "Activation patching: patch single block outputs, attention or MLP outputs or heads of one prompt into a run on another, for each layer and token, to locate where the answer is computed.",
  },
);

export type PatchSweepConfig = Filled<
  Static<typeof PatchSweepSubmission>,
  Exclude<CommonDefaults, "layers"> | "direction" | "controls" | "points"
>;

const interval = (description: string) =>
  Type.Optional(Type.Object({ low: Type.Number(), high: Type.Number() }, { description }));

const difference = Type.Number({ description: "Logit difference: the target's logit minus the foil's." });
const change = Type.Number({ description: "Its change relative to the patched run without a patch." });
const recovery = orNull(
  "The change as a share of the difference between the two runs: 0 is the unpatched run, 1 the run that the activations " +
    "come from. Null if the runs differ by less than 1e-6.",
);

export const PatchControl = Type.Object(
  { logit_difference: difference, change, recovery },
  { title: "PatchControl", description: "The same with a norm-matched random change." },
);

export const PatchSite = Type.Object(
  {
    layer: Type.Integer(),
    // Jobs of earlier versions have none: they patched block outputs.
    point: Type.Optional(Type.Enum([...changedPoints])),
    head: Type.Optional(Type.Integer({ description: "For head_out: the patched head." })),
    position: Type.Integer({ description: "As in `positions`." }),
    logit_difference: difference,
    change,
    recovery,
    change_interval: interval("95 % bootstrap interval over the pairs, if there are two or more."),
    recovery_interval: interval("The same for the recovery."),
    change_length: orNull("L2 norm of the change to the activation; null if nothing reads the activation."),
    row_length: orNull("L2 norm of the activation before the change."),
    control: Type.Optional(PatchControl),
  },
  {
    title: "PatchSite",
    description: "One hook point of one block, or one of its heads, at one token; means over the pairs.",
  },
);
export type PatchSite = Static<typeof PatchSite>;

const PatchedPrompt = Type.Object(
  {
    tokens: Type.Array(Type.String()),
    token_ids: Type.Array(Type.Integer()),
    spans: optional.Array(
      Type.Object({
        text: Type.String(),
        position: Type.Integer({ description: "Index of its last token, where the patch is applied." }),
      }),
      { description: "The marked spans." },
    ),
    logit_difference: difference,
  },
  { title: "PatchedPrompt" },
);

export const PatchPair = Type.Object(
  {
    clean: PatchedPrompt,
    corrupted: PatchedPrompt,
    restored: Type.Number({
      description:
        "Logit difference of the patched run with one of its own activations patched back: the effect of batching alone.",
    }),
    target_token: Type.String(),
    target_token_id: Type.Integer(),
    foil_token: Type.String(),
    foil_token_id: Type.Integer(),
  },
  { title: "PatchPair" },
);
export type PatchPair = Static<typeof PatchPair>;

export const PatchGrowth = Type.Object(
  {
    pair: Type.Integer({ description: "Index of the pair being patched." }),
    pairs: Type.Integer(),
    layers: Type.Array(Type.Integer()),
    points: Type.Array(Type.Enum([...changedPoints])),
    positions: Type.Array(Type.Integer({ description: "Token indices of this pair." })),
    clean: Type.Array(Type.String({ description: "The tokens at these positions." })),
    corrupted: Type.Array(Type.String()),
    recovery: Type.Array(Type.Union([Type.Number(), Type.Null()]), {
      description: "Layer by layer, point by point; null if not computed yet.",
    }),
  },
  {
    title: "PatchGrowth",
    description: "Partial results of a running patch sweep; included for a single job, not in lists.",
  },
);
export type PatchGrowth = Static<typeof PatchGrowth>;

export const PatchSweepResult = Type.Object(
  {
    direction: Type.Enum([...patchDirections]),
    layers: Type.Array(Type.Integer()),
    points: Type.Optional(Type.Array(Type.Enum([...changedPoints]))),
    heads: optional.Array(Type.Integer(), {
      description: "For head_out: the heads, each of which is a separate site.",
    }),
    positions: Type.Array(
      Type.Integer({
        description:
          "As requested: token indices, negative indices counting from the end. For marked texts: the numbers of the spans, from 0.",
      }),
    ),
    pairs: Type.Array(PatchPair),
    clean: Type.Number({ description: "Mean logit difference of the clean runs." }),
    corrupted: Type.Number({ description: "Mean logit difference of the corrupted runs." }),
    restored: Type.Number({
      description:
        "Mean logit difference of the patched runs with one of their own activations patched back.",
    }),
    sites: Type.Array(PatchSite, {
      description: "In the order of `layers`, `points` and `positions`; for head_out, also head by head.",
    }),
    computed_sites: Type.Integer({
      description:
        "Sites and controls that were computed. The rest cannot change anything: nothing reads the activation, or both runs are identical there.",
    }),
    computed_tokens: Type.Integer({ description: "Tokens computed for these sites." }),
    control_seed: Type.Optional(Type.Integer({ description: "Seed of the random changes." })),
    ...notedResultFields,
  },
  { title: "PatchSweepResult" },
);
export type PatchSweepResult = Static<typeof PatchSweepResult>;

/**
 * Checks constraints between fields.
 * @throws InvalidInput
 */
function checkPatchSweep(config: PatchSweepConfig): void {
  if (config.heads !== undefined && !config.points.includes("head_out")) {
    throw new InvalidInput("heads", "requires point head_out.");
  }
  for (const [index, { target_token, foil_token }] of promptPairs(config).entries()) {
    if (target_token === undefined || target_token !== foil_token) continue;
    const field =
      config.pairs?.[index]?.foil_token === undefined ? "foil_token" : `pairs[${index}].foil_token`;
    throw new InvalidInput(field, "must differ from target_token.");
  }
}

export default {
  submission: PatchSweepSubmission,
  result: PatchSweepResult,
  forAgents: "(clean and corrupted, or pairs)",
  places: {},
  check: checkPatchSweep,
} satisfies Contract;
