import type { TSchema } from "typebox";
import { createRouter, type RouteContext, type Routes } from "./app.js";

/** A body's content: JSON of a schema, a file's bytes, or either. */
type Content = { json?: object; bytes?: true };

export type ResponseSpec = Content & { description: string; headers?: object };

/** An OpenAPI parameter. */
export type Parameter = {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: object;
};

/** Path parameters are required, others optional. */
export function parameter(place: string, name: string, schema: object, description?: string): Parameter {
  return { name, in: place, required: place === "path", schema, ...(description && { description }) };
}

export const json = (description: string, schema: object): ResponseSpec => ({ description, json: schema });

/** Error responses with a common schema, described by status. */
export function refusals<Status extends number>(texts: Record<Status, string>, schema: TSchema) {
  return (...statuses: Status[]): Record<number, ResponseSpec> =>
    Object.fromEntries(statuses.map((status) => [status, json(texts[status], schema)]));
}

/** An endpoint's entry in the OpenAPI document. */
export interface Operation {
  operationId: string;
  tags?: readonly string[];
  summary: string;
  description?: string;
  parameters?: readonly Parameter[];
  body?: Content & { optional?: boolean };
  answers: Readonly<Record<number, ResponseSpec>>;
  /** Fields shared by the path's methods. */
  shared?: { parameters?: readonly Parameter[]; servers?: readonly object[] };
}

/** Method and OpenAPI path, such as `GET /jobs/{id}`; `{*id}` also matches slashes. */
type Place = { at: `${"GET" | "POST" | "PUT" | "DELETE"} ${string}` };

/** An operation with its method and path. */
export type Described = Operation & Place;

/** An endpoint of a service: its route and its OpenAPI entry, or the reason why it is unlisted. */
export type Endpoint<Service> = (Described | (Place & { unlisted: string })) & {
  /** Further paths with the same handler; the OpenAPI document has only the first. */
  also?: readonly string[];
  /** @returns the body for the first status in `answers`, or undefined if it has responded itself */
  answer(service: Service, ctx: RouteContext): unknown;
};

/** The routes of endpoints, in order. */
export function routesOf<Service>(endpoints: readonly Endpoint<Service>[], service: Service): Routes {
  const router = createRouter();
  for (const endpoint of endpoints) {
    const [status] = "answers" in endpoint ? Object.keys(endpoint.answers) : [200];
    const answer = async (ctx: RouteContext) => {
      const body = await endpoint.answer(service, ctx);
      if (body === undefined) return;
      ctx.status = Number(status);
      ctx.body = body;
    };
    const [method, place] = placeOf(endpoint);
    for (const path of [place, ...(endpoint.also ?? [])]) {
      router[method](
        path.replace(/\{(\*?)(\w+)\}/g, (_, wild, name) => `${wild || ":"}${name}`),
        answer,
      );
    }
  }
  return router;
}

function placeOf({ at }: Place): [method: "get" | "post" | "put" | "delete", path: string] {
  return at.replace(/^\w+/, (method) => method.toLowerCase()).split(" ") as ReturnType<typeof placeOf>;
}

/** Adapts the endpoints of a part of a service to the whole service. */
export function within<Whole, Part>(
  endpoints: readonly Endpoint<Part>[],
  part: (whole: Whole) => Part,
): Endpoint<Whole>[] {
  return endpoints.map((one) => ({ ...one, answer: (whole, ctx) => one.answer(part(whole), ctx) }));
}

/**
 * The `paths` of an OpenAPI document.
 * @param refer returns a schema or a reference to it
 */
export function pathsOf(
  endpoints: readonly (Described | { unlisted: string })[],
  refer: (schema: unknown) => unknown,
): Record<string, Record<string, unknown>> {
  const content = ({ json, bytes }: Content) => ({
    ...(json && { "application/json": { schema: refer(json) } }),
    ...(bytes && { "application/octet-stream": {} }),
  });
  const answered = ({ description, headers, ...held }: ResponseSpec) => ({
    description,
    ...(headers && { headers }),
    ...((held.json || held.bytes) && { content: content(held) }),
  });
  const paths: Record<string, Record<string, unknown>> = {};
  for (const endpoint of endpoints) {
    if ("unlisted" in endpoint) continue;
    const [method, path] = placeOf(endpoint);
    const { shared = {}, operationId, tags, summary, description, parameters, body, answers } = endpoint;
    paths[path] = {
      ...paths[path],
      ...(refer(shared) as object),
      [method]: {
        operationId,
        ...(tags && { tags }),
        summary,
        ...(description && { description }),
        ...(parameters && { parameters: refer(parameters) }),
        ...(body && { requestBody: { required: !body.optional, content: content(body) } }),
        responses: Object.fromEntries(
          Object.entries(answers).map(([status, answer]) => [status, answered(answer)]),
        ),
      },
    };
  }
  return paths;
}
