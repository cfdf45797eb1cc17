import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Context } from "koa";
import type { Static } from "typebox";
import { DictionaryRequest, LensRequest, StoredDictionary, StoredLens } from "../contracts/library.js";
import { limits } from "../contracts/limits.js";
import { checked, clientGone, type Endpoint, HttpError, readJson } from "../http/index.js";
import { shelfEndpoints } from "./endpoints.js";
import { Dictionaries } from "./index.js";
import { Lenses } from "./lenses.js";
import { lensPlace } from "../models/resolve.js";
import { SerialQueue } from "../native/serial.js";
import type { LibraryTask, Taken } from "./read-process.js";

/** Dictionaries and lenses that are kept, and the turns in which new ones are read. */
export class LargeThings {
  readonly dictionaries: Dictionaries;
  readonly lenses: Lenses;
  // One at a time: each may need as much memory as its file has bytes.
  readonly #turns = new SerialQueue("library");
  readonly #home: string;

  constructor(home: string) {
    this.#home = home;
    this.dictionaries = new Dictionaries(home);
    this.lenses = new Lenses(home);
  }

  /** Until its client goes away. */
  take(ctx: Context, task: Omit<LibraryTask, "home">): Promise<object> {
    const { signal } = clientGone(ctx);
    return this.#turns.run(() => take({ home: this.#home, ...task }, signal));
  }
}

/**
 * Sparse dictionaries and lenses by name, on the Lab's port: the list, one of them, a new one from a folder or the hub, its
 * end.
 */
export const largeEndpoints: readonly Endpoint<LargeThings>[] = [
  ...shelfEndpoints<LargeThings>({
    noun: "dictionary",
    plural: "dictionaries",
    what: "sparse dictionaries",
    stored: StoredDictionary,
    kept: ({ dictionaries }) => dictionaries,
    put: putting("dictionary", DictionaryRequest, ({ from, layer, point, k }) => ({
      place: from,
      claims: { layer, point, k },
    })),
  }),
  ...shelfEndpoints<LargeThings>({
    noun: "lens",
    plural: "lenses",
    what: "lenses that translate",
    stored: StoredLens,
    kept: ({ lenses }) => lenses,
    put: putting("lens", LensRequest, ({ from }) => ({ place: lensPlace(from) })),
  }),
];

function putting<S extends typeof DictionaryRequest | typeof LensRequest>(
  kind: LibraryTask["kind"],
  schema: S,
  taskOf: (request: Static<S>) => Pick<LibraryTask, "place" | "claims">,
) {
  return {
    summary: `Keep a published ${kind} from a folder or the hub, in place of one of that name`,
    description: "Answers when it is kept; what the hub has is downloaded into the shared cache first.",
    body: { json: schema },
    async answer(things: LargeThings, name: string, ctx: Context) {
      const request = checked(schema, await readJson(ctx, { limit: limits.job_body_bytes }));
      return things.take(ctx, { kind, name, revision: request.revision, ...taskOf(request) });
    },
  };
}

// The same file beside this one, from src/ under tsx and from dist/.
const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
const program = fileURLToPath(new URL(`./library-process.${extension}`, import.meta.url));

/**
 * Reads a dictionary or a lens in a process of its own: turning a gigabyte of weights into the one form takes seconds.
 * @throws HttpError with its sentence where it is refused
 */
function take(task: LibraryTask, signal: AbortSignal): Promise<object> {
  const gone = () => new HttpError(400, "The client left.");
  if (signal.aborted) return Promise.reject(gone());
  const child = fork(program, [], { execArgv: process.execArgv, stdio: ["ignore", "ignore", "pipe", "ipc"] });
  let said = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-2000);
  });
  // Not killed: a download leaves its lock in order.
  const stop = () => {
    if (child.connected) child.disconnect();
  };
  signal.addEventListener("abort", stop, { once: true });
  return new Promise<object>((resolve, reject) => {
    child.once("message", (answer: Taken) => {
      if ("stored" in answer) resolve(answer.stored);
      else reject(new HttpError(400, answer.refused));
    });
    child.once("error", reject);
    child.once("close", () =>
      reject(signal.aborted ? gone() : new Error(`No ${task.kind}, and no word why: ${said}`)),
    );
    child.send(task, () => {});
  }).finally(() => signal.removeEventListener("abort", stop));
}
