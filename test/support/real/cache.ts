import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { withLock } from "../../../scripts/build/lock.js";
import { cacheFolder } from "../../../scripts/build/source.js";

/** The one folder of everything large: real models, their forms, virtual environments. Never in the repository. */
export const realFolder = join(cacheFolder(process.env), "real");

const run = promisify(execFile);

/** Runs a program; its error carries the end of what it said. */
export async function runProgram(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<string> {
  try {
    const { stdout } = await run(command, [...args], {
      maxBuffer: 1 << 28,
      env: { ...process.env, ...env },
    });
    return stdout;
  } catch (error) {
    const { stderr = "", stdout = "", message } = error as Error & { stderr?: string; stdout?: string };
    const said = (stderr || stdout || message).trim().split("\n").slice(-8).join("\n");
    throw new Error(`${command} ${args.slice(0, 4).join(" ")} failed:\n${said}`);
  }
}

/** sha256 of a file, hexadecimal; nothing where there is no such file. */
export async function sha256(path: string): Promise<string | undefined> {
  const hash = createHash("sha256");
  try {
    await pipeline(createReadStream(path), hash);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return hash.digest("hex");
}

/** Makes a file or folder under another name and moves it into place, so that half of one is never found. */
export async function whole(path: string, make: (path: string) => Promise<unknown>): Promise<void> {
  const part = `${path}.part`;
  await rm(part, { recursive: true, force: true });
  await make(part);
  await rm(path, { recursive: true, force: true });
  await rename(part, path);
}

/** One process at a time works in the cache. */
export function locked<T>(work: () => Promise<T>): Promise<T> {
  return withLock(
    join(realFolder, "lock"),
    (pid) => console.error(`Waiting for process ${pid}, which prepares the real models.`),
    work,
  );
}
