import Type, { type TSchema } from "typebox";
import { operations, submissions } from "../contracts/index.js";

/**
 * A submission as one object: tools need an object at the root, so the operations' own schemas stand merged here,
 * and what belongs to which operation is checked by checkSubmission, as the service does it.
 */
export const SubmissionInput: TSchema = (() => {
  const fields: Record<string, TSchema> = {};
  for (const operation of operations) {
    for (const [name, schema] of Object.entries(
      submissions[operation].properties as Record<string, TSchema>,
    )) {
      if (name === "operation") continue;
      const given = fields[name];
      // Of the forms of examples, the last ones have an optional label and an optional split. Those of positions have
      // nothing in common.
      fields[name] = name === "positions" && given !== undefined ? Type.Union([given, schema]) : schema;
    }
  }
  const { model, ...others } = fields;
  return Type.Object(
    {
      operation: Type.Enum([...operations], {
        description:
          "inspect (prompt): norms and logit lens of each token at the layers, lens (a stored one) beside it; points inside the blocks; attention of heads; routing, the experts that blocks chose; decompose, what each block adds to a logit. compare (prompt, intervention, " +
          "strengths, one layer): what changes when a block's output is scaled, ablated, patched, steered, freed of a direction or clamped, or two tokens' coordinates are exchanged (swap). probe " +
          "(examples with label and split): a linear probe with controls. sae (examples with split): a small " +
          "sparse autoencoder. features (dictionary, prompt or texts): which features of a stored dictionary are active. " +
          "extract (examples, or data and out, paths on the Lab's machine): block outputs of a data set in files. " +
          "drift (other, examples): what changes between two models of one architecture. " +
          "patch_sweep (clean and corrupted, or pairs): where a block's output, or what its attention, its MLP or a single head adds (points; head_out with heads), at one token or marked span (positions aligned) moves the answer. " +
          "explain (prompt, layer, positions as token indices, verbaliser, template with a marker): rows of a block output in words, said by a model that is trained to.",
      }),
      model: model as TSchema,
      ...Object.fromEntries(Object.entries(others).map(([name, schema]) => [name, Type.Optional(schema)])),
    },
    { additionalProperties: false },
  );
})();
