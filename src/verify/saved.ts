import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { makeFolderDurably, writeDurably } from "../files/durable.js";
import { taplineHome } from "../files/home.js";
import type { Verification } from "./run.js";

/** Where the last result is, for `tapline doctor`. */
export const savedPath = () => join(taplineHome(), "verification.json");

/** @returns the path */
export async function saveVerification(result: Verification, path = savedPath()): Promise<string> {
  if (path === savedPath()) await makeFolderDurably(taplineHome());
  await writeDurably(path, `${JSON.stringify(result, null, 2)}\n`);
  return path;
}

/** The last result, if there is one. */
export async function savedVerification(): Promise<Verification | undefined> {
  try {
    return JSON.parse(await readFile(savedPath(), "utf8")) as Verification;
  } catch {
    return undefined;
  }
}
