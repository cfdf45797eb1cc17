import { randomBytes } from "node:crypto";

/**
 * A JSON value between two lines with a random nonce. The value's author could not know the nonce, and line breaks are
 * escaped in JSON, so no text can end the fence or start a line.
 * @param preface text before the fence
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
