import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { Store } from "../store/store.js";

const name = "sign-in key";

/** The encryption key for state carried by browsers; created on first use and shared through the database. */
async function keyOf(store: Store): Promise<Buffer> {
  const read = () =>
    store.db.selectFrom("secrets").select("value").where("name", "=", name).executeTakeFirst();
  let stored = await read();
  if (stored === undefined) {
    await store.db
      .insertInto("secrets")
      .values({ name, value: randomBytes(32).toString("base64url") })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    stored = await read();
  }
  return Buffer.from((stored as { value: string }).value, "base64url");
}

/** Encrypts and authenticates a value (AES-256-GCM). */
export async function seal(store: Store, value: unknown): Promise<string> {
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", await keyOf(store), nonce);
  const text = Buffer.concat([cipher.update(JSON.stringify(value), "utf8"), cipher.final()]);
  return Buffer.concat([nonce, text, cipher.getAuthTag()]).toString("base64url");
}

/** Decrypts a sealed value; undefined if this service did not seal it. */
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
