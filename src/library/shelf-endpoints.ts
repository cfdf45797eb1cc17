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
  refusals,
} from "../http/index.js";
import type { Shelf } from "./shelf.js";

export const known = (stored: TSchema) => json("What is known of it.", stored);
export const refused = refusals(
  {
    400: "A file, a layer or a model that does not fit; the sentence says which and the numbers.",
    403: "Not a program on this machine: LAN and browser requests are refused.",
    404: "There is none of that name.",
  },
  ErrorBody,
);

/** What is said of one thing, and what answers of it. */
type OfOne<Service, Fields extends keyof Operation> = Pick<Operation, "summary" | "parameters" | Fields> & {
  answer(service: Service, name: string, ctx: Context): Promise<unknown>;
};

/** Things of one kind that are kept under names. */
interface Kind<Service> {
  noun: string;
  plural?: string;
  /** What is kept, in the summary of the list, where the plural does not say it. */
  what?: string;
  stored: TSchema;
  kept(service: Service): Shelf<unknown>;
  get?: OfOne<Service, "answers">;
  put: OfOne<Service, "description" | "body">;
}

/** What is kept under names: the list, one of them, a new one, its end. */
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
  const all = json("All of them.", Type.Object({ [plural]: Type.Array(stored) }));
  const forgotten = json("Forgotten.", Type.Object({ deleted: Type.Literal(true) }));
  return [
    {
      at: `GET ${list}`,
      operationId: id("list", plural),
      summary: `The ${what} that are kept`,
      answers: { 200: all, ...refused(403) },
      answer: async (service) => ({ [plural]: await kept(service).list() }),
    },
    {
      at: `GET ${path}`,
      shared: { parameters: [parameter("path", "name", Name, "Its name.")] },
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
      summary: `Forget a ${noun}`,
      answers: { 200: forgotten, ...refused(403, 404) },
      async answer(service, ctx) {
        const name = nameOf(ctx.params);
        if (await kept(service).remove(name)) return { deleted: true };
        throw new HttpError(404, `There is no ${noun} named ${name}.`);
      },
    },
  ];
}

/** The name in a path, checked. */
function nameOf(params: unknown): string {
  return checked(Type.Object({ name: Name }), { name: (params as { name: string }).name }).name;
}

/** What is not there is 404. */
async function found<T>(look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (error) {
    throw error instanceof UserError ? new HttpError(404, error.message) : error;
  }
}

/** What a file or a text is refused for is the caller's fault. */
export async function refusing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UserError || error instanceof FormatError) throw new HttpError(400, error.message);
    throw error;
  }
}
