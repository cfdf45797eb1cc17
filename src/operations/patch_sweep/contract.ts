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
  Type.Optional(text(`Text that encodes to exactly one token, without special tokens; otherwise ${what}`));

const target_token = foilOrTarget("the clean run's most probable token.");

const foil_token = foilOrTarget("the corrupted run's.");

const clean = text("Raw text that is answered as it should be.");

const corrupted = text("Raw text of as many tokens, unless spans are marked, that is answered otherwise.");

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
      description: "Pairs in place of `clean` and `corrupted`: figures are means over them, with intervals.",
    }),
    target_token,
    foil_token,
    layers: optional.Array(Type.Integer({ minimum: 0, maximum: limits.layer_index }), {
      minItems: 1,
      maxItems: limits.layer_index + 1,
      uniqueItems: true,
      description: "Zero-based block indices, any number of them; otherwise all blocks.",
    }),
    points: optional.Array(Type.Enum([...changedPoints]), {
      minItems: 1,
      maxItems: changedPoints.length,
      uniqueItems: true,
      default: [...defaults.patch_points],
      description:
        "What is put in of each layer: block_out, its output; attn_out and ffn_out, what its attention and its MLP add to " +
        "the residual stream; block_in and mid, the stream before them; head_out, what each head read, head by head. A " +
        "model that has one of them not is refused.",
    }),
    heads: headList("Of head_out, the heads that are patched, each by itself; otherwise all."),
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
          "Token indices, negative ones from the end: -1 is the last token. Otherwise every token. Pairs of different " +
          `lengths need negative ones. Or aligned: in both texts of every pair as many spans stand between ` +
          `${spanMarks.join(" and ")}, at most ${limits.patch_spans}, and the last token of each is patched into that of its ` +
          "like; the marks are taken out, and the texts may differ in length.",
      },
    ),
    direction: optional.Enum([...patchDirections], {
      default: defaults.patch_direction,
      description:
        "denoise puts states of the clean run into the corrupted run: where is it enough? noise puts states of the " +
        "corrupted run into the clean run: where is it needed?",
    }),
    controls: optional.Boolean({
      default: defaults.patch_controls,
      description: "At each site also a random change, drawn from `seed`, as long as the patch's.",
    }),
  },
  {
    ...closed,
    title: "PatchSweepSubmission",
    description:
      "Put single block outputs of one prompt into the run of another, or what attention, MLPs or single heads add, for each layer and token: where does it happen?",
  },
);

export type PatchSweepConfig = Filled<
  Static<typeof PatchSweepSubmission>,
  Exclude<CommonDefaults, "layers"> | "direction" | "controls" | "points"
>;

const interval = (description: string) =>
  Type.Optional(Type.Object({ low: Type.Number(), high: Type.Number() }, { description }));

const difference = Type.Number({ description: "Logit difference: the target's logit less the foil's." });
const change = Type.Number({ description: "It less that of the run that is patched." });
const recovery = orNull(
  "The change as a share of the way from the run that is patched to the run that the states are from; null where these " +
    "two differ by less than 1e-6.",
);

export const PatchControl = Type.Object(
  { logit_difference: difference, change, recovery },
  { title: "PatchControl", description: "The same with a random change that is as long as the patch's." },
);

export const PatchSite = Type.Object(
  {
    layer: Type.Integer(),
    // Jobs of earlier versions have none: they patched block outputs.
    point: Type.Optional(Type.Enum([...changedPoints])),
    head: Type.Optional(Type.Integer({ description: "Of head_out, whose part of the row it is." })),
    position: Type.Integer({ description: "As in `positions`." }),
    logit_difference: difference,
    change,
    recovery,
    change_interval: interval("95 % bootstrap interval over the pairs, where there are two or more."),
    recovery_interval: interval("The same of the recovery."),
    change_length: orNull("L2 length of the row's change; null where nothing reads the row."),
    row_length: orNull("L2 length of the row before it."),
    control: Type.Optional(PatchControl),
  },
  {
    title: "PatchSite",
    description: "One point of one block, or one of its heads, at one token; means over the pairs.",
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
        position: Type.Integer({ description: "Index of its last token, which is patched." }),
      }),
      { description: "Of marked texts." },
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
        "Logit difference of the run that is patched, with a row of its own put back: what batches alone change.",
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
    pair: Type.Integer({ description: "Index of the pair that is being patched." }),
    pairs: Type.Integer(),
    layers: Type.Array(Type.Integer()),
    points: Type.Array(Type.Enum([...changedPoints])),
    positions: Type.Array(Type.Integer({ description: "Token indices of this pair." })),
    clean: Type.Array(Type.String({ description: "The tokens there." })),
    corrupted: Type.Array(Type.String()),
    recovery: Type.Array(Type.Union([Type.Number(), Type.Null()]), {
      description: "Layer by layer, point by point; null where it is still to be computed.",
    }),
  },
  {
    title: "PatchGrowth",
    description: "What of a patch sweep is known while it runs; told of a single job, not in lists.",
  },
);
export type PatchGrowth = Static<typeof PatchGrowth>;

export const PatchSweepResult = Type.Object(
  {
    direction: Type.Enum([...patchDirections]),
    layers: Type.Array(Type.Integer()),
    points: Type.Optional(Type.Array(Type.Enum([...changedPoints]))),
    heads: optional.Array(Type.Integer(), {
      description: "Of head_out, each of which is a site of its own.",
    }),
    positions: Type.Array(
      Type.Integer({
        description:
          "As asked for: token indices, negative ones from the end; of marked texts the spans' numbers, from 0.",
      }),
    ),
    pairs: Type.Array(PatchPair),
    clean: Type.Number({ description: "Mean logit difference of the clean runs," }),
    corrupted: Type.Number({ description: "of the corrupted runs," }),
    restored: Type.Number({
      description: "and of the runs that are patched, with a row of their own put back.",
    }),
    sites: Type.Array(PatchSite, {
      description:
        "Layer by layer, point by point, in the order of `layers`, `points` and `positions`; of head_out head by head.",
    }),
    computed_sites: Type.Integer({
      description:
        "Sites and controls that were computed; the others change nothing: nothing reads the row, or both runs are the same there.",
    }),
    computed_tokens: Type.Integer({ description: "Tokens that these took." }),
    control_seed: Type.Optional(Type.Integer({ description: "What the random changes were drawn from." })),
    ...notedResultFields,
  },
  { title: "PatchSweepResult" },
);
export type PatchSweepResult = Static<typeof PatchSweepResult>;

/**
 * What the fields of a patch sweep mean for each other.
 * @throws InvalidInput
 */
function checkPatchSweep(config: PatchSweepConfig): void {
  if (config.heads !== undefined && !config.points.includes("head_out")) {
    throw new InvalidInput("heads", "are those of point head_out.");
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
