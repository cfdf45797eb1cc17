import type { StoredDictionary } from "../contracts/library.js";
import { UserError } from "../contracts/user-error.js";
import { Dictionaries, type DictionaryClaims } from "../library/index.js";
import { resolveHubPlace } from "../models/hub/index.js";

/** What the service asks of this process. */
export interface DictionaryTask {
  /** Whose library. */
  home: string;
  name: string;
  /** A folder or a file of weights, here or on the hub. */
  place: string;
  claims: DictionaryClaims;
  revision: string | undefined;
}

/** Its answer: the dictionary that is kept now, or the sentence of a refusal. Other faults are the process's end. */
export type Taken = { stored: StoredDictionary } | { refused: string };

// The service's end is this process's end, and so is its client's: a download stops in order.
const stop = new AbortController();
process.on("disconnect", () => stop.abort());
// A closed terminal or Ctrl-C is the service's business.
for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {});

async function take({ home, name, place, claims, revision }: DictionaryTask): Promise<Taken> {
  const { signal } = stop;
  try {
    const stored = await new Dictionaries(home).add(name, place, claims, (asked, choose) =>
      resolveHubPlace(asked, choose, { signal, ...(revision !== undefined && { revision }) }),
    );
    return { stored };
  } catch (error) {
    if (error instanceof UserError) return { refused: error.message };
    if (signal.aborted) return { refused: "The client left." };
    throw error;
  }
}

process.once("message", async (task: DictionaryTask) => {
  const answer = await take(task);
  if (process.connected) process.send?.(answer, undefined, undefined, () => process.disconnect());
});
