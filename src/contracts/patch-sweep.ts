import Type, { type Static } from "typebox";
import { changedPoints, patchDirections } from "./names.js";
import { Provenance } from "./provenance.js";

const orNull = (description: string) => Type.Union([Type.Number(), Type.Null()], { description });

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
    spans: Type.Optional(
      Type.Array(
        Type.Object({
          text: Type.String(),
          position: Type.Integer({ description: "Index of its last token, which is patched." }),
        }),
        { description: "Of marked texts." },
      ),
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
    heads: Type.Optional(
      Type.Array(Type.Integer(), { description: "Of head_out, each of which is a site of its own." }),
    ),
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
    note: Type.String(),
    artifacts: Type.Array(Type.String(), { description: "Names for `GET .../artifacts/{name}`." }),
    provenance: Provenance,
  },
  { title: "PatchSweepResult" },
);
export type PatchSweepResult = Static<typeof PatchSweepResult>;
