import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { DictionaryRequest, LensRequest } from "../contracts/library.js";
import { limits } from "../contracts/limits.js";
import { checked, clientGone, HttpError, type Routes, readJson } from "../http/index.js";
import { nameOf, shelfRoutes } from "../library/endpoints.js";
import { Dictionaries } from "../library/index.js";
import { Lenses } from "../library/lenses.js";
import { lensPlace } from "../models/resolve.js";
import { SerialQueue } from "../native/serial.js";
import type { LibraryTask, Taken } from "./library-process.js";

/**
 * Sparse dictionaries and lenses by name, on the Lab's port: the list, one of them, a new one from a folder or the hub, its
 * end.
 */
export function largeRoutes(router: Routes, home: string): void {
  // One at a time: each may need as much memory as its file has bytes.
  const turns = new SerialQueue("library");
  shelfRoutes(router, "dictionary", "dictionaries", new Dictionaries(home));
  router.put("/lab/dictionaries/:name", async (ctx) => {
    const name = nameOf(ctx.params);
    const { from, layer, point, k, revision } = checked(
      DictionaryRequest,
      await readJson(ctx, { limit: limits.job_body_bytes }),
    );
    const { signal } = clientGone(ctx);
    const task = {
      kind: "dictionary",
      home,
      name,
      place: from,
      claims: { layer, point, k },
      revision,
    } as const;
    ctx.body = await turns.run(() => take(task, signal));
  });
  shelfRoutes(router, "lens", "lenses", new Lenses(home));
  router.put("/lab/lenses/:name", async (ctx) => {
    const name = nameOf(ctx.params);
    const { from, revision } = checked(LensRequest, await readJson(ctx, { limit: limits.job_body_bytes }));
    const { signal } = clientGone(ctx);
    const task = { kind: "lens", home, name, place: lensPlace(from), revision } as const;
    ctx.body = await turns.run(() => take(task, signal));
  });
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
