import { readFileSync } from "node:fs";

/** Version of this package, from its package.json: two folders up in both src/ and dist/. */
export const version: string = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
).version;
