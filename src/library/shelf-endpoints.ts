import type { Context } from "koa";
import Type, { type TSchema } from "typebox";
import { ErrorBody } from "../contracts/job.js";
import { Name } from "../contracts/live.js";
import { UserError } from "../contracts/user-error.js";
import { FormatError } from "../formats/format-error.js";
import {
  checked,
  type Endpoint,
  HttpError,
  json,
  type Operation,
  parameter,
  readJson,
  refusals,
} from "../http/index.js";
import type { Shelf } from "./shelf.js";

export const known = (stored: TSchema) => json("Its description.", stored);
export const refused = refusals(
  {
    400: "An unsuitable file, layer or model; the message has the details.",
    403: "LAN and browser requests are refused; only local programs are allowed.",
    404: "There is no object of that name.",
  },
  ErrorBody,
);

/** The description and handler of an operation on one object. */
type OfOne<Service, Fields extends keyof Operation> = Pick<Operation, "summary" | "parameters" | Fields> & {
  answer(service: Service, name: string, ctx: Context): Promise<unknown>;
};

/** A kind of saved object. */
interface Kind<Service> {
  noun: string;
  plural?: string;
  /** Plural in the summary of the list, if different. */
  what?: string;
  stored: TSchema;
  kept(service: Service): Shelf<unknown>;
  get?: OfOne<Service, "answers">;
  put: OfOne<Service, "description" | "body">;
}

/** Endpoints of saved objects: list, get, put, delete. */
export function shelfEndpoints<Service>(kind: Kind<Service>): Endpoint<Service>[] {
  const { noun, plural = `${noun}s`, what = plural, stored, kept, put } = kind;
  const list = `/lab/${plural}`;
  const path = `${list}/{name}`;
  const id = (verb: string, thing = noun) => `${verb}${thing.charAt(0).toUpperCase()}${thing.slice(1)}`;
  const get: OfOne<Service, "answers"> = kind.get ?? {
    summary: `One ${noun}`,
    answers: { 200: known(stored), ...refused(403, 404) },
    answer: (service, name) => kept(service).get(name),
  };
  const all = json("All of them, by name.", Type.Object({ [plural]: Type.Array(stored) }));
  const forgotten = json("Deleted.", Type.Object({ deleted: Type.Literal(true) }));
  return [
    {
      at: `GET ${list}`,
      operationId: id("list", plural),
      summary: `List saved ${what}`,
      answers: { 200: all, ...refused(403) },
      answer: async (service) => ({ [plural]: await kept(service).list() }),
    },
    {
      at: `GET ${path}`,
      shared: { parameters: [parameter("path", "name", Name, "Name of the saved object.")] },
      operationId: id("get"),
      ...get,
      async answer(service, ctx) {
        const name = nameOf(ctx.params);
        return found(() => get.answer(service, name, ctx));
      },
    },
    {
      at: `PUT ${path}`,
      operationId: id("put"),
      ...put,
      answers: { 200: known(stored), ...refused(400, 403) },
      answer: (service, ctx) => put.answer(service, nameOf(ctx.params), ctx),
    },
    {
      at: `DELETE ${path}`,
      operationId: id("delete"),
      summary: `Delete a ${noun}`,
      answers: { 200: forgotten, ...refused(403, 404) },
      async answer(service, ctx) {
        const name = nameOf(ctx.params);
        if (await kept(service).remove(name)) return { deleted: true };
        throw new HttpError(404, `There is no ${noun} named ${name}.`);
      },
    },
    {
      at: `POST ${path}/rename`,
      shared: { parameters: [parameter("path", "name", Name, "Name of the saved object.")] },
      operationId: id("rename"),
      summary: `Rename a ${noun}`,
      body: { json: RenameBody },
      answers: { 200: known(stored), ...refused(400, 403, 404) },
      async answer(service, ctx) {
        const name = nameOf(ctx.params);
        const { name: to } = checked(RenameBody, await readJson(ctx, { limit: 4096 }));
        await found(() => kept(service).get(name));
        return refusing(() => kept(service).rename(name, to));
      },
    },
  ];
}

const RenameBody = Type.Object({ name: Name }, { additionalProperties: false, title: "Rename" });

/** The validated name in a path. */
function nameOf(params: unknown): string {
  return checked(Type.Object({ name: Name }), { name: (params as { name: string }).name }).name;
}

/** Answers 404 for missing objects. */
async function found<T>(look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (error) {
    throw error instanceof UserError ? new HttpError(404, error.message) : error;
  }
}

/** Answers 400 for refused files and texts. */
export async function refusing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UserError || error instanceof FormatError) throw new HttpError(400, error.message);
    throw error;
  }
}
