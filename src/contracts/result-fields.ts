import Type, { type Static } from "typebox";
import { Excluded } from "./excluded.js";
import { blockPoints, targetPoints, textRows } from "./names.js";
import { optional } from "./optional.js";
import { Provenance } from "./provenance.js";

export const Candidate = Type.Object(
  { token_id: Type.Integer(), token: Type.String(), probability: Type.Number() },
  { title: "Candidate" },
);
export type Candidate = Static<typeof Candidate>;

/** Fields of every result. */
export const resultFields = {
  artifacts: Type.Array(Type.String(), { description: "Names for `GET .../artifacts/{name}`." }),
  provenance: Provenance,
};

/** The same with a note on the figures. */
export const notedResultFields = { note: Type.String(), ...resultFields };

/** Absent for the block's output, as in results of earlier versions. */
export const pointRead = optional.Enum([...blockPoints], {
  description: "Point of each block that was read; if absent, its output.",
});

/** Absent where there is none. */
export const targetRead = optional.Enum([...targetPoints], {
  description: "Second point of each block that was read, the target of a transcoder.",
});

/** The same for the activations of each text. */
export const rowsRead = optional.Enum([...textRows], {
  description: "Which activation of each text was read; if absent, the last token's.",
});

/** The saved lens that was used. */
export const LensUsed = Type.Object(
  {
    name: Type.String(),
    kind: Type.String({ description: "jacobian, tuned or regression." }),
    sha256: Type.String({ description: "Hash of its weights." }),
  },
  { description: "The saved lens that was used." },
);

export const splitOf = Type.Enum(["train", "test"]);

export const requiredInterval = (description: string) =>
  Type.Object({ low: Type.Number(), high: Type.Number() }, { description });

/** Optional, because results of earlier versions have no interval. */
export const Interval = (description: string) => Type.Optional(requiredInterval(description));

export const excludedFromMeans = optional.Object(Excluded.properties, {
  description: "For means: activations that they exclude.",
});

export const orNull = (description: string) => Type.Union([Type.Number(), Type.Null()], { description });
