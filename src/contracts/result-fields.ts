import Type, { type Static } from "typebox";
import { Excluded } from "./excluded.js";
import { blockPoints, textRows } from "./names.js";
import { optional } from "./optional.js";
import { Provenance } from "./provenance.js";

export const Candidate = Type.Object(
  { token_id: Type.Integer(), token: Type.String(), probability: Type.Number() },
  { title: "Candidate" },
);
export type Candidate = Static<typeof Candidate>;

/** What every result ends with. */
export const resultFields = {
  artifacts: Type.Array(Type.String(), { description: "Names for `GET .../artifacts/{name}`." }),
  provenance: Provenance,
};

/** The same with what is to be said of the figures. */
export const notedResultFields = { note: Type.String(), ...resultFields };

/** Where nothing is said, it is the block's output, as in results of earlier versions. */
export const pointRead = optional.Enum([...blockPoints], {
  description: "What of each block was read; absent: its output.",
});

/** The same of the rows of each text. */
export const rowsRead = optional.Enum([...textRows], {
  description: "Which row of each text was read; absent: the last token's.",
});

/** A lens that is kept by name, as it was used. */
export const LensUsed = Type.Object(
  {
    name: Type.String(),
    kind: Type.String({ description: "jacobian, tuned or regression." }),
    sha256: Type.String({ description: "Of its numbers." }),
  },
  { description: "The stored lens that was used." },
);

export const splitOf = Type.Enum(["train", "test"]);

export const toldInterval = (description: string) =>
  Type.Object({ low: Type.Number(), high: Type.Number() }, { description });

/** Of results that may be of an earlier version, which had none. */
export const Interval = (description: string) => Type.Optional(toldInterval(description));

export const excludedFromMeans = optional.Object(Excluded.properties, {
  description: "For means: activations that they leave out.",
});

export const orNull = (description: string) => Type.Union([Type.Number(), Type.Null()], { description });
