import { basename } from "node:path";
import type { Command, Option } from "commander";
import { UsageError } from "./exit-code.js";
import { integerBetween } from "./options.js";
import { serverOption } from "./service-address.js";

export interface KeptOptions {
  url: string;
  json?: boolean;
}

export interface AddOptions extends KeptOptions {
  layer?: number;
  model?: string;
  restamp?: boolean;
  format?: string;
  entry?: string;
}

/** One kind of thing that a server keeps by name. */
export interface Kept<Stored extends { name: string }> {
  noun: "vector" | "probe";
  /** Files that it is read from, and forms that it is written in. */
  reads: string;
  writes: readonly string[];
  /** One of them as a table; and as a line of the list, behind its name. */
  table(stored: Stored): string;
  line(stored: Stored): string;
  /** Further options of `add`, and what files beside the one that is added say. */
  addOptions?: readonly Option[];
  claims?(file: string, options: AddOptions): Promise<AddOptions>;
}

/** Many texts are many forward passes, and each waits for its turn. */
export const makeTimeoutMs = 600_000;

export async function keptTools({ url }: KeptOptions, timeoutMs = 30_000) {
  const [{ Transport }, { print, printJson, writeOut }] = await Promise.all([
    import("../client/transport.js"),
    import("./output.js"),
  ]);
  return { http: new Transport(url, timeoutMs, { service: "serve" }), print, printJson, writeOut };
}

/** What can be done with every kind of them: list, show, add, export, rm. */
export function registerKept<Stored extends { name: string }>(parent: Command, kept: Kept<Stored>): void {
  const { noun, reads, writes } = kept;
  const pathOf = (name: string) => `/lab/${noun}s/${encodeURIComponent(name)}`;
  const command = (name: string, description: string) => keptCommand(parent, name, description);

  command("list", `List the ${noun}s that are kept.`).action(async (options: KeptOptions) => {
    const { http, print, printJson } = await keptTools(options);
    const answer = await http.json<Record<string, Stored[]>>(`/lab/${noun}s`);
    if (options.json) return printJson(answer);
    const lines = (answer[`${noun}s`] ?? []).map(
      (stored) => `${stored.name.padEnd(24)} ${kept.line(stored)}`,
    );
    return print(
      lines.length === 0 ? `There are no ${noun}s yet; tapline ${noun} make makes one.` : lines.join("\n"),
    );
  });
  command("show", `Show one ${noun}.`)
    .argument("<name>")
    .action(async (name: string, options: KeptOptions) => {
      const { http, print, printJson } = await keptTools(options);
      const stored = await http.json<Stored>(pathOf(name));
      return options.json ? printJson(stored) : print(kept.table(stored));
    });
  const add = command("add", `Keep a ${noun} from a file: ${reads}.`)
    .argument("<name>")
    .argument("<file>")
    .option("--layer <number>", "layer of a file that does not say", integerBetween(0, 255))
    .option("--model <name>", "model of a file that does not say (default: the one that is served)")
    .option("--restamp", "take a file that says that it belongs to another model");
  for (const option of kept.addOptions ?? []) add.addOption(option);
  add.action(async (name: string, file: string, given: AddOptions) => {
    const options = (await kept.claims?.(file, given)) ?? given;
    const { readFile } = await import("node:fs/promises");
    const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
      throw new UsageError(`${file} cannot be read (${error.code}).`);
    });
    const { http, print, printJson } = await keptTools(options);
    const query = new URLSearchParams({
      ...(options.layer !== undefined && { layer: String(options.layer) }),
      ...(options.model !== undefined && { model: options.model }),
      ...(options.format !== undefined && { format: options.format }),
      ...(options.entry !== undefined && { entry: options.entry }),
      ...(options.restamp && { restamp: "1" }),
    });
    const stored = await http.json<Stored>(`${pathOf(name)}?${query}`, { method: "PUT", body: bytes });
    return options.json ? printJson(stored) : print(kept.table(stored));
  });
  command("export", `Write a ${noun} to a file: ${writes.join(" or ")}.`)
    .argument("<name>")
    .argument("<file>")
    .action(async (name: string, file: string, options: KeptOptions) => {
      const form = /\.(\w+)$/.exec(basename(file))?.[1]?.toLowerCase() ?? "";
      if (!writes.some((written) => written.startsWith(`.${form}`) && form !== "")) {
        throw new UsageError(`${file}: a ${noun} is written as ${writes.join(" or ")}.`);
      }
      const { http, print, printJson, writeOut } = await keptTools(options);
      const bytes = await http.bytes(`${pathOf(name)}?format=${form}`);
      await writeOut(file, bytes);
      return options.json
        ? printJson({ name, file, bytes: bytes.length })
        : print(`${file} (${bytes.length} bytes)`);
    });
  command("rm", `Forget a ${noun}.`)
    .argument("<name>")
    .action(async (name: string, options: KeptOptions) => {
      const { http, print, printJson } = await keptTools(options);
      const answer = await http.json(pathOf(name), { method: "DELETE" });
      return options.json ? printJson(answer) : print(`${name} is forgotten.`);
    });
}

/** A command that asks the server. */
export function keptCommand(parent: Command, name: string, description: string): Command {
  return parent
    .command(name)
    .description(description)
    .addOption(serverOption())
    .option("--json", "print what the server answers as JSON, for programs");
}

export function figure(value: number | null | undefined, digits = 3): string {
  return value == null ? "-" : value.toFixed(digits);
}
