/** One entry an endpoint: the route and the description are made from it, and what is not described is named here. */
import Type from "typebox";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  createApp,
  type Endpoint,
  listen,
  parameter,
  pathsOf,
  routesOf,
  within,
} from "../../src/http/index.js";
import { inferenceEndpoints, servingDocument } from "../../src/inference/endpoints.js";
import type { InferenceService } from "../../src/inference/service.js";
import { type LabParts, labEndpoints, openApiDocument } from "../../src/lab/endpoints.js";
import { openApi } from "../../src/studies/api/endpoints.js";
import { apiRoutes } from "../../src/studies/api/middleware.js";
import type { Service } from "../../src/studies/service.js";
import { send } from "../support/request.js";

type Stack = ReturnType<typeof routesOf>["stack"];

/** What a router answers, and what a document describes, as `METHOD /path/{name}`. */
const routed = (stack: Stack) =>
  stack.map(
    ({ methods, path }) =>
      `${methods.find((method) => method !== "HEAD")} ${path.replace(/[:*](\w+)/g, "{$1}")}`,
  );
const described = ({ paths }: { paths?: unknown }) =>
  Object.entries(paths as Record<string, Record<string, unknown>>).flatMap(([path, item]) =>
    Object.keys(item)
      .filter((key) => key !== "parameters" && key !== "servers")
      .map((method) => `${method.toUpperCase()} ${path}`),
  );

for (const { service, stack, document, unlisted, elsewhere } of [
  {
    service: "the Lab",
    stack: routesOf(labEndpoints, {} as LabParts).stack,
    document: openApiDocument("http://x"),
    unlisted: ["POST /lab/vectors", "POST /lab/probes"],
    elsewhere: ["GET /lab/capabilities", "POST /lab/activations"],
  },
  {
    service: "the inference server",
    stack: routesOf(inferenceEndpoints, {} as InferenceService).stack,
    document: servingDocument("http://x"),
    unlisted: [
      ...["POST /v1/reranking", "POST /completions", "GET /v1/models/{id}", "GET /v1/health"],
      ...["POST /props", "POST /lora-adapters", "GET /metrics", "GET /openapi.json"],
      ...["GET /executions", "GET /executions/{id}", "DELETE /executions"],
    ],
    elsewhere: [],
  },
  {
    service: "the studies' API",
    stack: apiRoutes({ origin: "https://x" } as Service).stack,
    document: openApi("https://x"),
    unlisted: ["GET /api/v1/openapi.json"],
    elsewhere: [],
  },
]) {
  test(`${service} describes each route but those named here, and nothing else`, () => {
    const routes = routed(stack);
    assert.is(new Set(routes).size, routes.length, "no route is there twice");
    const told = [...described(document), ...unlisted];
    assert.equal(told.sort(), [...routes, ...elsewhere].sort());
  });
}

const Sum = Type.Object({ sum: Type.Integer() }, { title: "Sum" });
const endpoints: Endpoint<{ base: number }>[] = [
  {
    at: "POST /sums/{left}",
    also: ["/old/{left}"],
    shared: { parameters: [parameter("path", "left", { type: "string" })] },
    operationId: "add",
    summary: "Adds",
    parameters: [parameter("query", "right", { type: "string" }, "What is added.")],
    body: { json: Sum, optional: true },
    answers: { 201: { description: "The sum.", json: Sum }, 400: { description: "No number." } },
    answer: ({ base }, { params, query }) => ({ sum: base + Number(params.left) + Number(query.right) }),
  },
  {
    at: "GET /sums/{left}",
    operationId: "file",
    summary: "A file",
    answers: { 200: { description: "Bytes.", bytes: true } },
    answer(_, ctx) {
      ctx.status = 206;
      ctx.body = Buffer.from("ab");
    },
  },
  { at: "GET /any/{*rest}", unlisted: "it has slashes", answer: (_, { params }) => params },
];

test("an entry defines a route: parameters, aliases and its success status", async () => {
  const routes = routesOf(
    within(endpoints, (whole: { half: number }) => ({ base: 2 * whole.half })),
    { half: 50 },
  );
  const { url, close } = await listen(createApp({ routers: [routes] }), { port: 0 });
  try {
    for (const path of ["/sums/7?right=3", "/old/7?right=3"]) {
      const { status, body } = await send(url + path, "POST", {});
      assert.equal([status, body], [201, { sum: 110 }]);
    }
    const file = await send(`${url}/sums/7`, "GET");
    assert.equal([file.status, file.bytes.toString()], [206, "ab"], "what answers itself is left alone");
    assert.equal((await send(`${url}/any/a/b%20c`, "GET")).body, { rest: "a/b c" });
    assert.equal((await send(`${url}/sums/7`, "DELETE")).headers.allow, "GET, HEAD, POST");
  } finally {
    await close();
  }
});

test("an entry defines a description: shared parts, bodies, responses by type", () => {
  const paths = pathsOf(endpoints, (schema) => (schema === Sum ? "the sum" : schema));
  assert.equal(paths, {
    "/sums/{left}": {
      parameters: [{ name: "left", in: "path", required: true, schema: { type: "string" } }],
      post: {
        operationId: "add",
        summary: "Adds",
        parameters: [
          {
            name: "right",
            in: "query",
            required: false,
            schema: { type: "string" },
            description: "What is added.",
          },
        ],
        requestBody: { required: false, content: { "application/json": { schema: "the sum" } } },
        responses: {
          201: { description: "The sum.", content: { "application/json": { schema: "the sum" } } },
          400: { description: "No number." },
        },
      },
      get: {
        operationId: "file",
        summary: "A file",
        responses: { 200: { description: "Bytes.", content: { "application/octet-stream": {} } } },
      },
    },
  });
});

test.run();
