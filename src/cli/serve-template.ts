import { readFile } from "node:fs/promises";
import { UserError } from "../contracts/user-error.js";

/** The text of a chat template file. */
export async function readTemplate(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new UserError(`The chat template ${path} cannot be read: ${(error as Error).message}.`);
  }
}
