import Type, { type Static } from "typebox";
import { operations } from "../operations/contracts.js";
import { limits } from "./limits.js";
import { modelPoints } from "./names.js";
import { orNull } from "./optional.js";

const limitFields = Object.fromEntries(
  Object.entries(limits).map(([name, value]) => [name, Type.Integer({ description: `${value}` })]),
);

export const LabHealth = Type.Object(
  {
    status: Type.Literal("ok"),
    api_version: Type.Literal(1),
    version: Type.String(),
    operations: Type.Array(Type.Enum([...operations])),
    points: Type.Array(Type.Enum([...modelPoints]), {
      description: "Points of a block that experiments support; each model lists those it has.",
    }),
    limits: Type.Object(limitFields, { title: "Limits" }),
    active_job: orNull(Type.String(), { description: "Id of the running job." }),
    queued: Type.Integer(),
    queue_capacity: Type.Integer({ description: "Number of jobs that may wait." }),
    backend: Type.String(),
  },
  { title: "LabHealth" },
);
export type LabHealth = Static<typeof LabHealth>;
