import { randomBytes } from "node:crypto";

/**
 * A JSON value between two lines that hold a random nonce. Whoever wrote the value could not know the nonce, and a
 * line end in a text stands as `\n` within JSON, so no text can end the fence or begin a line of its own.
 * @param preface the fence's own words, before it
 */
export function fence(preface: string, value: unknown): string {
  const payload = JSON.stringify(value, null, 1);
  let nonce: string;
  do {
    nonce = randomBytes(16).toString("hex");
  } while (payload.includes(nonce));
  return [
    preface,
    `----- untrusted data ${nonce} begins -----`,
    payload,
    `----- untrusted data ${nonce} ends -----`,
  ].join("\n");
}
