import { createHash, randomInt } from "node:crypto";
import type { Kysely } from "kysely";
import { isThere } from "./rows.js";
import type { Database } from "./schema.js";

const longest = 32;

/** Handles that could be mistaken for the service itself. */
const reserved = new Set(
  (
    "admin administrator anonymous api deleted deleted-account moderator operator root security staff support " +
    "system tapline unnamed"
  ).split(" "),
);

/** The stored hash of a deleted account's handle. */
export function retiredHash(handle: string): string {
  return createHash("sha256").update(`handle ${handle}`).digest("hex");
}

/** Whether a handle belonged to a deleted account. */
export function isRetired(db: Kysely<Database>, handle: string): Promise<boolean> {
  return isThere(db.selectFrom("retired_handles").select("hash").where("hash", "=", retiredHash(handle)));
}

/**
 * A free handle that resembles a name. Concurrent callers may get the same one; the unique index decides.
 * @param isOut whether a free handle must not be assigned, checked after it was found to be free
 */
export async function freeHandle(
  db: Kysely<Database>,
  name: string,
  isOut: (handle: string) => Promise<boolean> = async () => false,
): Promise<string> {
  const base = handleOf(name);
  for (let attempt = 1; ; attempt += 1) {
    const handle =
      attempt === 1 ? base : attempt < 10 ? `${base}-${attempt}` : `${base}-${randomInt(1_000, 10_000_000)}`;
    if (attempt === 1 && reserved.has(base)) continue;
    const taken = await isThere(db.selectFrom("accounts").select("id").where("handle", "=", handle));
    if (!taken && !(await isOut(handle))) return handle;
  }
}

/** Lowercase letters, digits and single hyphens, with a letter or digit at both ends. */
function handleOf(name: string): string {
  const folded = name
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, longest)
    .replace(/^-+|-+$/g, "");
  return folded === "" ? "reader" : folded;
}
