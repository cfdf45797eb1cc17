import type { StoredDictionary, StoredLens } from "../contracts/library.js";
import { UserError } from "../contracts/user-error.js";
import { resolveHubPlace } from "../models/hub/index.js";
import { Dictionaries, type DictionaryClaims } from "./index.js";
import type { FromHub } from "./layout-files.js";
import { Lenses } from "./lenses.js";

/** What the service asks of this process. */
export interface LibraryTask {
  kind: "dictionary" | "lens";
  /** Whose library. */
  home: string;
  name: string;
  /** A folder or a file of weights, here or on the hub. */
  place: string;
  /** Of a dictionary. */
  claims?: DictionaryClaims;
  revision: string | undefined;
}

/** Its answer: what is kept now, or the sentence of a refusal. Other faults are the process's end. */
export type Taken = { stored: StoredDictionary | StoredLens } | { refused: string };

// The service's end is this process's end, and so is its client's: a download stops in order.
const stop = new AbortController();
process.on("disconnect", () => stop.abort());
// A closed terminal or Ctrl-C is the service's business.
for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {});

async function take({ kind, home, name, place, claims, revision }: LibraryTask): Promise<Taken> {
  const { signal } = stop;
  const fromHub: FromHub = (asked, choose) =>
    resolveHubPlace(asked, choose, { signal, ...(revision !== undefined && { revision }) });
  try {
    const stored =
      kind === "lens"
        ? await new Lenses(home).add(name, place, fromHub)
        : await new Dictionaries(home).add(name, place, claims, fromHub);
    return { stored };
  } catch (error) {
    if (error instanceof UserError) return { refused: error.message };
    if (signal.aborted) return { refused: "The client left." };
    throw error;
  }
}

process.once("message", async (task: LibraryTask) => {
  const answer = await take(task);
  if (process.connected) process.send?.(answer, undefined, undefined, () => process.disconnect());
});
