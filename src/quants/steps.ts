import { appendFile, mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { absent } from "../files/absent.js";
import { makeFolderDurably, writeDurably } from "../files/durable.js";

/** Finished parts of a run in a folder, so that a killed one continues where it ended. */
export class Steps {
  constructor(readonly folder: string) {}

  path(name: string): string {
    return join(this.folder, name);
  }

  /** A part that is read if it is finished, and else made and written. */
  async once<T>(name: string, make: () => Promise<T>): Promise<T> {
    const known = await this.read<T>(name);
    if (known !== undefined) return known;
    const made = await make();
    await makeFolderDurably(dirname(this.path(name)));
    await writeDurably(this.path(name), JSON.stringify(made));
    return made;
  }

  async read<T>(name: string): Promise<T | undefined> {
    const text = await readFile(this.path(name), "utf8").catch(absent);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  /** Finished lines; the last one of a killed run may be torn, and does not count. */
  async lines<T>(name: string): Promise<T[]> {
    const text = (await readFile(this.path(name), "utf8").catch(absent)) ?? "";
    const whole = text.slice(0, text.lastIndexOf("\n") + 1);
    if (whole !== text) await writeDurably(this.path(name), whole);
    return whole
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as T);
  }

  async append(name: string, line: unknown): Promise<void> {
    await mkdir(dirname(this.path(name)), { recursive: true });
    await appendFile(this.path(name), `${JSON.stringify(line)}\n`);
  }
}
