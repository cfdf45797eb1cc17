import Type, { type Static } from "typebox";

/** Activations that means and figures leave out; native/base/counted_rows.h has the rule. */
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
