/** In the types of rounded forms' weights. */
export const evenText = "round-to-nearest";
export const nf4Text = "4-bit NormalFloat";

/** Whether weights are of a rounded form, which is computed in the reference's types. */
export const isRoundedType = (type: string): boolean => type.includes(evenText) || type.includes(nf4Text);
