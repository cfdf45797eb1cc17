import Type, { type Static } from "typebox";

/** What a text's activations have to be to count in means, in what is made of them, and in fidelity; native/base/counted_rows.h defines it. */
export const Excluded = Type.Object(
  {
    bos: Type.Integer({ description: "Activations of BOS tokens." }),
    outliers: Type.Integer({
      description: "Activations whose norm is above ten times the median norm of their text's, BOS aside.",
    }),
  },
  { title: "Excluded", description: "Activations that were left out." },
);
export type Excluded = Static<typeof Excluded>;

/** The same of several. */
export function sumOfExcluded(parts: readonly Excluded[]): Excluded {
  return {
    bos: parts.reduce((sum, { bos }) => sum + bos, 0),
    outliers: parts.reduce((sum, { outliers }) => sum + outliers, 0),
  };
}
