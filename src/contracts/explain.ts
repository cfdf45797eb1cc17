import Type, { type Static } from "typebox";
import { Provenance } from "./provenance.js";

export const Description = Type.Object(
  {
    text: Type.String(),
    tokens: Type.Integer(),
    ended: Type.Boolean({ description: "By the verbaliser itself; otherwise it was cut." }),
  },
  { title: "Description", description: "What the verbaliser said, once." },
);
export type Description = Static<typeof Description>;

const descriptions = (description: string) => Type.Array(Description, { description });

export const ExplainedRow = Type.Object(
  {
    position: Type.Integer({ description: "Index of its token, from 0." }),
    token: Type.String(),
    token_id: Type.Integer(),
    norm: Type.Number({ description: "L2 length of the block output." }),
    descriptions: descriptions("One a sample."),
    shuffled: Type.Optional(
      descriptions("Of the control: the same numbers in another order, drawn from `seed`."),
    ),
  },
  { title: "ExplainedRow", description: "One row of the block output, and what the verbaliser said to it." },
);
export type ExplainedRow = Static<typeof ExplainedRow>;

export const ExplainResult = Type.Object(
  {
    layer: Type.Integer(),
    verbaliser: Type.Object(
      {
        name: Type.String(),
        quantization: Type.String(),
        bytes: Type.Integer(),
        prompt_tokens: Type.Integer({ description: "Of the template, the marked one included." }),
        token_scale: Type.Number({
          description:
            "What the model multiplies a typed token's embedding by, and a row that is put in not: 1 for most.",
        }),
      },
      { title: "Verbaliser" },
    ),
    length: Type.Union([Type.Number(), Type.Null()], {
      description: "L2 length that every row was scaled to; null: as it was.",
    }),
    explained: Type.Array(ExplainedRow, { description: "In the order of `positions`." }),
    unfilled: Type.Optional(
      descriptions("Of the control without a row: the marker stands in its place, as it is typed."),
    ),
    note: Type.String(),
    artifacts: Type.Array(Type.String(), { description: "Names for `GET .../artifacts/{name}`." }),
    provenance: Provenance,
  },
  { title: "ExplainResult" },
);
export type ExplainResult = Static<typeof ExplainResult>;
