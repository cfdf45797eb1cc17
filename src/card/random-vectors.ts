import { createHash } from "node:crypto";
import { hostname } from "node:os";
import type { ServingModel } from "../client/index.js";
import type { StoredVector } from "../contracts/library.js";
import type { StoredProfile } from "../contracts/profile.js";
import { isRunning } from "../files/running.js";
import { randomVector } from "../findings/random.js";

/** The server's library may also be used from other machines, through a tunnel. */
const machine = createHash("sha256").update(hostname()).digest("hex").slice(0, 6);

/** Names of one process's vectors. */
function ownPrefix(pid: number): string {
  return `card-${machine}-${pid}-`;
}

const ownName = new RegExp(`^card-${machine}-(\\d+)-\\d+-\\d+$`);

/** Removes the vectors of cards on this machine that were killed. */
async function removeLeftovers(serving: ServingModel, signal: AbortSignal | undefined): Promise<void> {
  for (const { name } of await serving.vectors({ signal })) {
    const pid = ownName.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) await serving.removeVector(name, { signal });
  }
}

/** Saved vectors of the profile's norms in random directions, removed afterwards. */
export class RandomVectors {
  private constructor(
    /** By seed: the replacement's name by the vector's. */
    readonly names: readonly ReadonlyMap<string, string>[],
  ) {}

  get count(): number {
    return this.names.length;
  }

  static async make(
    serving: ServingModel,
    { tapline }: StoredProfile,
    { random, seed }: { random: number; seed: number },
    signal: AbortSignal | undefined,
  ): Promise<RandomVectors> {
    const used = (tapline.interventions ?? []).flatMap(({ vector }) =>
      typeof vector === "string" ? [vector] : [],
    );
    const names = [...new Set(used)];
    const made: Map<string, string>[] = [];
    const vectors = new RandomVectors(made);
    if (names.length === 0) return vectors;
    await removeLeftovers(serving, signal);
    const stored: StoredVector[] = [];
    for (const name of names) stored.push(await serving.vector(name, { signal }));
    try {
      for (let round = 0; round < random; round++) {
        const replacements = new Map<string, string>();
        made.push(replacements);
        for (const [index, { name, layers, n_embd }] of stored.entries()) {
          const own = `${ownPrefix(process.pid)}${round + 1}-${index + 1}`;
          const rows = layers.map(({ layer, length }, at) => {
            const number = seed + 7919 * round + 104_729 * index + at;
            return [layer, randomVector(n_embd, length, number)] as const;
          });
          await serving.putVector(own, Object.fromEntries(rows), { signal });
          replacements.set(name, own);
        }
      }
      return vectors;
    } catch (error) {
      await vectors.remove(serving);
      throw error;
    }
  }

  async remove(serving: ServingModel): Promise<void> {
    for (const name of this.names.flatMap((each) => [...each.values()])) {
      // Continues after an error, to delete as many as possible.
      await serving.removeVector(name).catch(() => {});
    }
  }
}
