import Type, { type TSchema } from "typebox";
import { contracts, operations } from "../contracts/index.js";

/** The fields of all operations' submissions. */
const submissionFields: Readonly<Record<string, TSchema>> = (() => {
  const fields: Record<string, TSchema> = {};
  for (const operation of operations) {
    for (const [name, schema] of Object.entries(
      contracts[operation].submission.properties as Record<string, TSchema>,
    )) {
      if (name === "operation") continue;
      const given = fields[name];
      // The last operation's examples have optional labels and splits, so they accept the others'. Positions differ, so they
      // become a union.
      fields[name] = name === "positions" && given !== undefined ? Type.Union([given, schema]) : schema;
    }
  }
  return fields;
})();

/**
 * A submission as one object schema, which tools require at the root. checkSubmission checks which fields belong to which
 * operation, as in the service.
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

/** The same for tools/list: only field names and types. lab_operation returns the fields' meaning per operation. */
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
        description: "A .gguf file, a folder with one model, a hub id, or `demo`.",
      }),
      ...Object.fromEntries(
        Object.entries(others).map(([name, schema]) => [name, Type.Optional(bare(schema))]),
      ),
    },
    { additionalProperties: false },
  );
})();
