import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { Store } from "../store/store.js";

const name = "sign-in key";

/** The database's key for what browsers carry for the service; made on first use, the same in every process. */
async function keyOf(store: Store): Promise<Buffer> {
  const read = () =>
    store.db.selectFrom("secrets").select("value").where("name", "=", name).executeTakeFirst();
  let kept = await read();
  if (kept === undefined) {
    await store.db
      .insertInto("secrets")
      .values({ name, value: randomBytes(32).toString("base64url") })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    kept = await read();
  }
  return Buffer.from((kept as { value: string }).value, "base64url");
}

/** Encrypts a value so that only this service reads it, and nobody changes it (AES-256-GCM). */
export async function seal(store: Store, value: unknown): Promise<string> {
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", await keyOf(store), nonce);
  const text = Buffer.concat([cipher.update(JSON.stringify(value), "utf8"), cipher.final()]);
  return Buffer.concat([nonce, text, cipher.getAuthTag()]).toString("base64url");
}

/** What was sealed; undefined where it was not, by this service. */
export async function unseal(store: Store, sealed: string): Promise<unknown> {
  const bytes = Buffer.from(sealed, "base64url");
  const key = await keyOf(store);
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12), { authTagLength: 16 });
    decipher.setAuthTag(bytes.subarray(-16));
    return JSON.parse(
      Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]).toString("utf8"),
    );
  } catch {
    return undefined;
  }
}
