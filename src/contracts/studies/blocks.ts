import Type, { type Static, type TSchema } from "typebox";
import { contracts, type Operation, operations } from "../../operations/contracts.js";
import { Submission } from "../job.js";
import { studyLimits as limits } from "./limits.js";
import { Uuid } from "./package.js";

/** What a fenced block of a text field says after its fence when it is for machines, too. */
export const blockLabels = {
  result: "tapline-result",
  request: "tapline-request",
  reproduction: "tapline-reproduction",
} as const;

const closed = { additionalProperties: false };
const schemaVersion = Type.Literal(1);
const job = Type.Optional(
  Type.String({ pattern: "^[0-9a-f]{32}$", description: "Id of the job in its author's Lab." }),
);

/** Where and with what it was made stands in the package's other entries, and files are not part of a package. */
const bare = <S extends { properties: Record<string, TSchema> }>(schema: S) => {
  const { provenance: _, artifacts: __, ...properties } = schema.properties;
  return Type.Object(properties);
};

const result = (operation: string, schema: TSchema) =>
  Type.Object(
    {
      schemaVersion,
      operation: Type.Literal(operation),
      job,
      left_out: Type.Optional(
        Type.String({ maxLength: limits.omission, description: "What of the result is not here, and why." }),
      ),
      result: schema,
    },
    closed,
  );

/** `tapline-result`: the result of one Lab job, as compact JSON. */
export const ResultBlocks = Object.fromEntries(
  operations.map((operation) => [operation, result(operation, bare(contracts[operation].result))]),
) as unknown as Readonly<Record<Operation, ReturnType<typeof result>>>;

/** `tapline-request`: what was asked of the Lab. Whoever reproduces it sends it to their own, after a look and a yes. */
export const RequestBlock = Type.Object(
  { schemaVersion, job, request: Submission },
  { ...closed, title: "RequestBlock" },
);
export type RequestBlock = Static<typeof RequestBlock>;

export const outcomes = ["held", "partly", "failed"] as const;
export type Outcome = (typeof outcomes)[number];

/** `tapline-reproduction`: which published study this one repeats, and what came of it. */
export const ReproductionBlock = Type.Object(
  {
    schemaVersion,
    study: Uuid,
    version: Type.Integer({ minimum: 1, maximum: 999_999_999 }),
    package_sha256: Type.String({
      pattern: "^[0-9a-f]{64}$",
      description: "Of the bytes that were repeated.",
    }),
    outcome: Type.Enum([...outcomes]),
    differed: Type.Optional(
      Type.String({ maxLength: limits.reason, description: "What came out otherwise, in words." }),
    ),
  },
  { ...closed, title: "ReproductionBlock" },
);
export type ReproductionBlock = Static<typeof ReproductionBlock>;
