import Type, { type TSchema } from "typebox";
import { contracts, operations } from "../contracts/index.js";

/** The fields of all operations' own schemas. */
const submissionFields: Readonly<Record<string, TSchema>> = (() => {
  const fields: Record<string, TSchema> = {};
  for (const operation of operations) {
    for (const [name, schema] of Object.entries(
      contracts[operation].submission.properties as Record<string, TSchema>,
    )) {
      if (name === "operation") continue;
      const given = fields[name];
      // Of the forms of examples, the last ones have an optional label and an optional split. Those of positions have
      // nothing in common.
      fields[name] = name === "positions" && given !== undefined ? Type.Union([given, schema]) : schema;
    }
  }
  return fields;
})();

/**
 * A submission as one object, which tools need at the root; what belongs to which operation is checked by checkSubmission, as the
 * service does it.
 */
export const SubmissionInput: TSchema = (() => {
  const { model, ...others } = submissionFields;
  return Type.Object(
    {
      operation: Type.Enum([...operations]),
      model: model as TSchema,
      ...Object.fromEntries(Object.entries(others).map(([name, schema]) => [name, Type.Optional(schema)])),
    },
    { additionalProperties: false },
  );
})();

/** The same as tools/list shows it: which fields there are. Operations differ in what a field means: lab_operation says it. */
export const ListedSubmission: TSchema = (() => {
  const { operation: _operation, model: _model, ...others } = submissionFields;
  const bare = (schema: TSchema): TSchema => {
    const { type, items, enum: names } = schema as { type?: string; items?: TSchema; enum?: unknown[] };
    if (names !== undefined) return { enum: names } as TSchema;
    if (type === "array" && items !== undefined) return { type, items: bare(items) } as TSchema;
    return (type === undefined ? {} : { type }) as TSchema;
  };
  return Type.Object(
    {
      operation: Type.Enum([...operations], {
        description: operations
          .map((operation) => `${operation} ${contracts[operation].forAgents}.`)
          .join(" "),
      }),
      model: Type.String({
        description: "A .gguf file, a folder that holds one model, a hub id, or `demo`.",
      }),
      ...Object.fromEntries(
        Object.entries(others).map(([name, schema]) => [name, Type.Optional(bare(schema))]),
      ),
    },
    { additionalProperties: false },
  );
})();
