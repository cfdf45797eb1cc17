import type { TSchema } from "typebox";
import {
  CancelBody,
  Capabilities,
  CaptureRequest,
  CaptureResult,
  Deleted,
  ErrorBody,
  Job,
  JobList,
  jobIdPattern,
  LabHealth,
  limits,
  ports,
  Submission,
  version,
} from "../contracts/index.js";
import { largePaths, libraryPaths } from "../contracts/library-paths.js";
import { withReferences } from "../contracts/openapi.js";

type Json = Record<string, unknown>;

const errorTexts: Record<number, string> = {
  400: `Invalid JSON, a body over ${limits.job_body_bytes} bytes, or invalid parameters.`,
  403: "Not a program on this machine: LAN and browser requests are refused.",
  404: "No such job, artifact or route.",
  405: "The route exists and accepts other methods.",
  408: `The capture waited ${limits.capture_queue_seconds} seconds and expired.`,
  409: "Busy, or the job is in a state that does not allow this.",
  416: "The range lies outside the file.",
};

/**
 * The OpenAPI 3.1 description of the research endpoints, made from the schemas that validate them. It also
 * describes the resident paths of the inference server, which have their own server URL.
 * @param origin where this service is reached
 */
export function openApiDocument(origin: string): Json {
  const components: Json = {};
  const ref = (schema: TSchema) => withReferences(schema, components);
  const json = (description: string, schema: TSchema) => ({
    description,
    content: { "application/json": { schema: ref(schema) } },
  });
  const body = (schema: TSchema, required = true) => ({
    required,
    content: { "application/json": { schema: ref(schema) } },
  });
  const errors = (...statuses: number[]) =>
    Object.fromEntries(statuses.map((status) => [status, json(errorTexts[status] as string, ErrorBody)]));
  const id = {
    name: "id",
    in: "path",
    required: true,
    schema: { type: "string", pattern: jobIdPattern },
    description: "Job id.",
  };
  const inferenceServer = [
    { url: `http://127.0.0.1:${ports.inference}`, description: "The inference server, on its default port." },
  ];

  const paths = {
    "/lab/v1/health": {
      get: {
        operationId: "getHealth",
        tags: ["lab"],
        summary: "Service capabilities and limits",
        responses: { 200: json("Capabilities.", LabHealth), ...errors(403) },
      },
    },
    "/lab/v1/openapi.json": {
      get: {
        operationId: "getDescription",
        tags: ["lab"],
        summary: "This description",
        responses: {
          200: {
            description: "An OpenAPI 3.1 document.",
            content: { "application/json": { schema: { type: "object" } } },
          },
          ...errors(403),
        },
      },
    },
    "/lab/v1/jobs": {
      post: {
        operationId: "submitJob",
        tags: ["jobs"],
        summary: "Submit an experiment",
        description: "Acceptance is not completion: poll the job until its status is a last one.",
        requestBody: body(Submission),
        responses: { 202: json("Accepted; job metadata.", Job), ...errors(400, 403, 409) },
      },
      get: {
        operationId: "listJobs",
        tags: ["jobs"],
        summary: `The newest ${limits.job_list} jobs`,
        responses: { 200: json("Summaries, newest first.", JobList), ...errors(403) },
      },
    },
    "/lab/v1/jobs/{id}": {
      parameters: [id],
      get: {
        operationId: "getJob",
        tags: ["jobs"],
        summary: "One job with its configuration and result or error",
        responses: { 200: json("The job.", Job), ...errors(403, 404) },
      },
      delete: {
        operationId: "deleteJob",
        tags: ["jobs"],
        summary: "Delete a finished job with its artifacts",
        responses: { 200: json("Deleted.", Deleted), ...errors(403, 404, 409) },
      },
    },
    "/lab/v1/jobs/{id}/cancel": {
      parameters: [id],
      post: {
        operationId: "cancelJob",
        tags: ["jobs"],
        summary: "Cancel a job; a finished one stays as it is",
        requestBody: body(CancelBody, false),
        responses: { 200: json("Job metadata.", Job), ...errors(400, 403, 404) },
      },
    },
    "/lab/v1/jobs/{id}/artifacts/{name}": {
      parameters: [
        id,
        {
          name: "name",
          in: "path",
          required: true,
          schema: { type: "string" },
          description: "A name that the result lists under `artifacts`.",
        },
      ],
      get: {
        operationId: "getArtifact",
        tags: ["jobs"],
        summary: "One binary file of a completed job",
        parameters: [
          {
            name: "Range",
            in: "header",
            required: false,
            schema: { type: "string" },
            description: "One byte range, such as `bytes=0-1023`.",
          },
        ],
        responses: {
          200: { description: "The whole file.", content: { "application/octet-stream": {} } },
          206: { description: "The range asked for.", content: { "application/octet-stream": {} } },
          304: { description: "The file is the one that If-None-Match names." },
          ...errors(403, 404, 416),
        },
      },
    },
    ...libraryPaths(components, { tags: ["library"] }),
    ...largePaths(components, { tags: ["library"] }),
    "/lab/capabilities": {
      servers: inferenceServer,
      get: {
        operationId: "getCapabilities",
        tags: ["resident"],
        summary: "The resident model's identity, support and limits",
        responses: { 200: json("Capabilities.", Capabilities), ...errors(403) },
      },
    },
    "/lab/activations": {
      servers: inferenceServer,
      post: {
        operationId: "captureActivations",
        tags: ["resident"],
        summary: "Measure the resident model directly",
        requestBody: body(CaptureRequest),
        responses: { 200: json("The measurement; not a job.", CaptureResult), ...errors(400, 403, 408, 409) },
      },
    },
  };

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
        description: "Vectors and probes by name; they are made where a model is resident.",
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
    // PatchSweepSubmission is of patch_sweep.
    ($ref.split("/").at(-1) as string)
      .replace("Submission", "")
      .replace(/(?<=[a-z])(?=[A-Z])/g, "_")
      .toLowerCase(),
    $ref,
  ]);
  return { propertyName: "operation", mapping: Object.fromEntries(mapping) };
}
