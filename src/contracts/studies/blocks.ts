import Type, { type Static, type TSchema } from "typebox";
import { contracts, type Operation, operations } from "../../operations/contracts.js";
import { Submission } from "../job.js";
import { optional } from "../optional.js";
import { sha256Pattern } from "../sha256.js";
import { studyLimits as limits } from "./limits.js";
import { Uuid } from "./package.js";

/** Info strings of fenced blocks in text fields that are also machine-readable. */
export const blockLabels = {
  result: "tapline-result",
  request: "tapline-request",
  reproduction: "tapline-reproduction",
  quants: "tapline-quants",
} as const;

const closed = { additionalProperties: false };
const schemaVersion = Type.Literal(1);
const job = optional.String({ pattern: "^[0-9a-f]{32}$", description: "Id of the job in its author's Lab." });

/** Leaves out provenance, which the package's other entries have, and artifacts, which packages do not contain. */
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
      left_out: optional.String({
        maxLength: limits.omission,
        description: "Parts of the result that are omitted, and why.",
      }),
      result: schema,
    },
    closed,
  );

/** `tapline-result`: the result of one Lab job, as compact JSON. */
export const ResultBlocks = Object.fromEntries(
  operations.map((operation) => [operation, result(operation, bare(contracts[operation].result))]),
) as unknown as Readonly<Record<Operation, ReturnType<typeof result>>>;

/** `tapline-request`: a request to the Lab. To reproduce it, readers review it and send it to their own Lab. */
export const RequestBlock = Type.Object(
  { schemaVersion, job, request: Submission },
  { ...closed, title: "RequestBlock" },
);
export type RequestBlock = Static<typeof RequestBlock>;

export const outcomes = ["held", "partly", "failed"] as const;
export type Outcome = (typeof outcomes)[number];

/** `tapline-reproduction`: which published study this one reproduces, with what outcome. */
export const ReproductionBlock = Type.Object(
  {
    schemaVersion,
    study: Uuid,
    version: Type.Integer({ minimum: 1, maximum: 999_999_999 }),
    package_sha256: Type.String({
      pattern: sha256Pattern,
      description: "SHA-256 of the reproduced package's bytes.",
    }),
    outcome: Type.Enum([...outcomes]),
    differed: optional.String({ maxLength: limits.reason, description: "How the results differ, in words." }),
  },
  { ...closed, title: "ReproductionBlock" },
);
export type ReproductionBlock = Static<typeof ReproductionBlock>;
