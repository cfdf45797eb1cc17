import {
  CancelBody,
  Capabilities,
  CaptureRequest,
  CaptureResult,
  checkSubmission,
  Deleted,
  ErrorBody,
  Job,
  JobList,
  jobIdPattern,
  LabHealth,
  limits,
  operations,
  ports,
  Submission,
  version,
} from "../contracts/index.js";
import { modelPoints } from "../contracts/names.js";
import { withReferences } from "../contracts/openapi.js";
import {
  accepted,
  checked,
  type Described,
  type Endpoint,
  json,
  parameter,
  pathsOf,
  type ResponseSpec,
  readJson,
  refusals,
  sendFile,
  within,
} from "../http/index.js";
import { libraryEndpoints } from "../library/endpoints.js";
import type { Library } from "../library/library.js";
import type { Lab } from "./lab.js";

type Json = Record<string, unknown>;

/** Dependencies of the endpoints. */
export interface LabParts {
  lab: Lab;
  /** The compute backend of this build. */
  backend: string;
  library: Library;
}

const errors = refusals(
  {
    400: `Invalid JSON, a body over ${limits.job_body_bytes} bytes, or invalid parameters.`,
    403: "LAN and browser requests are refused; only local programs are allowed.",
    404: "No such job, artifact or route.",
    408: `The capture waited ${limits.capture_queue_seconds} seconds and expired.`,
    409: "The Lab is busy, or the job's state does not allow this.",
    416: "The range is outside the file.",
  },
  ErrorBody,
);

const file = (description: string): ResponseSpec => ({ description, bytes: true });
const id = parameter("path", "id", { type: "string", pattern: jobIdPattern }, "Job id.");
const text = { type: "string" };
const bounds = { limit: limits.job_body_bytes };

const ownEndpoints: readonly Endpoint<LabParts>[] = [
  {
    at: "GET /lab/v1/health",
    operationId: "getHealth",
    tags: ["lab"],
    summary: "Service capabilities and limits",
    answers: { 200: json("Capabilities.", LabHealth), ...errors(403) },
    answer: ({ lab, backend }): LabHealth => ({
      status: "ok",
      api_version: 1,
      version,
      operations: [...operations],
      points: [...modelPoints],
      limits,
      active_job: lab.activeJob,
      queued: lab.queued,
      queue_capacity: lab.queueCapacity,
      backend,
    }),
  },
  {
    at: "GET /lab/v1/openapi.json",
    operationId: "getDescription",
    tags: ["lab"],
    summary: "This description",
    answers: { 200: json("An OpenAPI 3.1 document.", { type: "object" }), ...errors(403) },
    answer: (_, ctx) => openApiDocument(`http://${ctx.host}`),
  },
  {
    at: "POST /lab/v1/jobs",
    operationId: "submitJob",
    tags: ["jobs"],
    summary: "Submit an experiment",
    description: "The job is only accepted: poll it until its status is final.",
    body: { json: Submission },
    answers: { 202: json("Accepted; job metadata.", Job), ...errors(400, 403, 409) },
    async answer({ lab }, ctx) {
      const given = await readJson(ctx, bounds);
      return lab.submit(accepted(() => checkSubmission(given)));
    },
  },
  {
    at: "GET /lab/v1/jobs",
    operationId: "listJobs",
    tags: ["jobs"],
    summary: `The newest ${limits.job_list} jobs`,
    answers: { 200: json("Summaries, newest first.", JobList), ...errors(403) },
    answer: ({ lab }) => ({ jobs: lab.list() }),
  },
  {
    at: "GET /lab/v1/jobs/{id}",
    shared: { parameters: [id] },
    operationId: "getJob",
    tags: ["jobs"],
    summary: "A job with its configuration and its result or error",
    answers: { 200: json("The job.", Job), ...errors(403, 404) },
    answer: ({ lab }, { params }): Promise<Job> => lab.get(params.id as string),
  },
  {
    at: "DELETE /lab/v1/jobs/{id}",
    operationId: "deleteJob",
    tags: ["jobs"],
    summary: "Delete a finished job with its artifacts",
    answers: { 200: json("Deleted.", Deleted), ...errors(403, 404, 409) },
    async answer({ lab }, { params }) {
      await lab.remove(params.id as string);
      return { deleted: true };
    },
  },
  {
    at: "POST /lab/v1/jobs/{id}/cancel",
    shared: { parameters: [id] },
    operationId: "cancelJob",
    tags: ["jobs"],
    summary: "Cancel a job; no effect on a finished one",
    body: { json: CancelBody, optional: true },
    answers: { 200: json("Job metadata.", Job), ...errors(400, 403, 404) },
    async answer({ lab }, ctx) {
      checked(CancelBody, await readJson(ctx, { ...bounds, optional: true }));
      return lab.cancel(ctx.params.id as string);
    },
  },
  {
    at: "GET /lab/v1/jobs/{id}/artifacts/{name}",
    shared: {
      parameters: [id, parameter("path", "name", text, "A name that the result lists under `artifacts`.")],
    },
    operationId: "getArtifact",
    tags: ["jobs"],
    summary: "One binary file of a completed job",
    parameters: [parameter("header", "Range", text, "One byte range, such as `bytes=0-1023`.")],
    answers: {
      200: file("The whole file."),
      206: file("The requested range."),
      304: { description: "The file is unchanged (If-None-Match)." },
      ...errors(403, 404, 416),
    },
    answer: ({ lab }, ctx) => sendFile(ctx, lab.artifact(ctx.params.id as string, ctx.params.name as string)),
  },
];

/** Every endpoint of the Lab. */
export const labEndpoints: readonly Endpoint<LabParts>[] = [
  ...ownEndpoints,
  ...within(libraryEndpoints, ({ library }: LabParts) => library).map((one) => ({
    ...one,
    tags: ["library"],
  })),
];

const servers = [
  { url: `http://127.0.0.1:${ports.inference}`, description: "The inference server, on its default port." },
];

/** Endpoints of the inference server under /lab, described here with the other measurements. */
const resident: readonly Described[] = [
  {
    at: "GET /lab/capabilities",
    shared: { servers },
    operationId: "getCapabilities",
    tags: ["resident"],
    summary: "The resident model's identity, support and limits",
    answers: { 200: json("Capabilities.", Capabilities), ...errors(403) },
  },
  {
    at: "POST /lab/activations",
    shared: { servers },
    operationId: "captureActivations",
    tags: ["resident"],
    summary: "Measure the resident model directly",
    body: { json: CaptureRequest },
    answers: { 200: json("The measurement; not a job.", CaptureResult), ...errors(400, 403, 408, 409) },
  },
];

/**
 * The OpenAPI 3.1 description of the research endpoints, made from the schemas that validate them. It also describes
 * the resident paths of the inference server, which have their own server URL.
 * @param origin origin of this service
 */
export function openApiDocument(origin: string): Json {
  const components: Json = {};
  const paths = pathsOf([...labEndpoints, ...resident], (schema) => withReferences(schema, components));
  const submission = components.Submission as Json;
  submission.discriminator = operationDiscriminator(submission.anyOf as { $ref: string }[]);
  return {
    openapi: "3.1.1",
    info: {
      title: "tapline research API",
      version,
      description:
        "Isolated experiments on local models, and direct measurements of the resident model. " +
        "Loopback and non-browser clients only; no credentials.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: origin, description: "This service." }],
    tags: [
      { name: "lab", description: "The service itself." },
      { name: "jobs", description: "Isolated experiments, one at a time." },
      {
        name: "library",
        description: "Saved vectors and probes; new ones are made by the inference server.",
      },
      { name: "resident", description: "The inference server's own measurements." },
    ],
    security: [],
    paths,
    components: { schemas: components },
  };
}

function operationDiscriminator(options: { $ref: string }[]): Json {
  const mapping = options.map(({ $ref }) => [
    // PatchSweepSubmission belongs to patch_sweep.
    ($ref.split("/").at(-1) as string)
      .replace("Submission", "")
      .replace(/(?<=[a-z])(?=[A-Z])/g, "_")
      .toLowerCase(),
    $ref,
  ]);
  return { propertyName: "operation", mapping: Object.fromEntries(mapping) };
}
