import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** tapline's data folder: `--home`, else TAPLINE_HOME, else ~/.tapline. */
export function taplineHome(override?: string): string {
  return resolve(override ?? (process.env.TAPLINE_HOME || join(homedir(), ".tapline")));
}
