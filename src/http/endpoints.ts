import type { TSchema } from "typebox";
import { createRouter, type RouteContext, type Routes } from "./app.js";

/** What a body holds: JSON of a schema, a file's bytes, or either. */
type Content = { json?: object; bytes?: true };

export type Answered = Content & { description: string; headers?: object };

/** A parameter as OpenAPI has it. */
export type Parameter = {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: object;
};

/** One of a path is required, others are not. */
export function parameter(place: string, name: string, schema: object, description?: string): Parameter {
  return { name, in: place, required: place === "path", schema, ...(description && { description }) };
}

export const json = (description: string, schema: object): Answered => ({ description, json: schema });

/** Refusals of one shape, by what each status says. */
export function refusals<Status extends number>(texts: Record<Status, string>, schema: TSchema) {
  return (...statuses: Status[]): Record<number, Answered> =>
    Object.fromEntries(statuses.map((status) => [status, json(texts[status], schema)]));
}

/** What the OpenAPI document says of an endpoint. */
export interface Operation {
  operationId: string;
  tags?: readonly string[];
  summary: string;
  description?: string;
  parameters?: readonly Parameter[];
  body?: Content & { optional?: boolean };
  answers: Readonly<Record<number, Answered>>;
  /** What the methods of the path have in common. */
  shared?: { parameters?: readonly Parameter[]; servers?: readonly object[] };
}

/** Method and path: `GET /jobs/{id}`, as OpenAPI has it; `{*id}` takes slashes, too. */
type Place = { at: `${"GET" | "POST" | "PUT" | "DELETE"} ${string}` };

/** An operation, and where it is. */
export type Described = Operation & Place;

/** One endpoint of a service: its route, and its part of the OpenAPI document. One that the document leaves out says why. */
export type Endpoint<Service> = (Described | (Place & { unlisted: string })) & {
  /** Further paths that answer the same; the document has the first one only. */
  also?: readonly string[];
  /** @returns the body of the first status in `answers`, or nothing where it has answered itself */
  answer(service: Service, ctx: RouteContext): unknown;
};

/** The routes of endpoints, in their order. */
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

/** The endpoints of a part of a service as those of the whole. */
export function within<Whole, Part>(
  endpoints: readonly Endpoint<Part>[],
  part: (whole: Whole) => Part,
): Endpoint<Whole>[] {
  return endpoints.map((one) => ({ ...one, answer: (whole, ctx) => one.answer(part(whole), ctx) }));
}

/**
 * The `paths` of an OpenAPI document.
 * @param refer writes a schema, or a reference to it
 */
export function pathsOf(
  endpoints: readonly (Described | { unlisted: string })[],
  refer: (schema: unknown) => unknown,
): Record<string, Record<string, unknown>> {
  const content = ({ json, bytes }: Content) => ({
    ...(json && { "application/json": { schema: refer(json) } }),
    ...(bytes && { "application/octet-stream": {} }),
  });
  const answered = ({ description, headers, ...held }: Answered) => ({
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
