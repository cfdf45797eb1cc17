import { basename } from "node:path";
import type { Command, Option } from "commander";
import { UsageError } from "./exit-code.js";
import { choice, integerBetween } from "./options.js";
import { type ServerOptions, serverCommand } from "./server-command.js";
import { stopSignal } from "./stop-signal.js";

/** Saved items of one kind, by name. */
interface Shelf<Stored> {
  get(name: string): Promise<Stored>;
  list(): Promise<Stored[]>;
  remove(name: string): Promise<boolean>;
}

interface Looks<Stored extends { name: string }, Options extends { json?: boolean }> {
  noun: string;
  plural: string;
  /** How to create the first item; and an addition to the description of `show`. */
  first: string;
  shows?: string;
  command(parent: Command, name: string, description: string): Command;
  open(options: Options): Promise<Shelf<Stored>>;
  /** An item as a line of the list, after its name; and as printed by `show` and `add`. */
  line(stored: Stored): string;
  picture(stored: Stored): string;
}

/** Commands of every kind: list, show and, registered last, rm. */
export function registerShelf<Stored extends { name: string }, Options extends { json?: boolean }>(
  parent: Command,
  { noun, plural, first, shows = "", command, open, line, picture }: Looks<Stored, Options>,
): { registerRemoval(): void } {
  const shelfOf = (options: Options) => Promise.all([open(options), import("./output.js")]);
  command(parent, "list", `List saved ${plural}.`).action(async (options: Options) => {
    const [shelf, { print, printJson }] = await shelfOf(options);
    const all = await shelf.list();
    if (options.json) return printJson({ [plural]: all });
    const lines = all.map((stored) => `${stored.name.padEnd(24)} ${line(stored)}`);
    return print(lines.length === 0 ? `No ${plural} saved yet. ${first}` : lines.join("\n"));
  });
  command(parent, "show", `Show a saved ${noun}${shows}.`)
    .argument("<name>")
    .action(async (name: string, options: Options) => {
      const [shelf, { print, printJson }] = await shelfOf(options);
      const stored = await shelf.get(name);
      return options.json ? printJson(stored) : print(picture(stored));
    });
  const registerRemoval = () =>
    void command(parent, "rm", `Delete a saved ${noun}.`)
      .argument("<name>")
      .action(async (name: string, options: Options) => {
        const [shelf, { print, printJson }] = await shelfOf(options);
        if (!(await shelf.remove(name))) throw new UsageError(`There is no ${noun} named ${name}.`);
        return options.json ? printJson({ deleted: true }) : print(`Deleted ${name}.`);
      });
  return { registerRemoval };
}

export interface AddOptions extends ServerOptions {
  layer?: number;
  model?: string;
  restamp?: boolean;
  format?: string;
  entry?: string;
}

/** One kind of item that a server saves by name. */
export interface Saved<Stored extends { name: string }> {
  noun: "vector" | "probe";
  /** How an item is made from texts. Additional options have the names of the request's fields. */
  makes: {
    description: string;
    positive: string;
    negative: string;
    options: readonly Option[];
    example: string;
  };
  /** Input files, and output formats. */
  reads: string;
  writes: readonly string[];
  /** An item as a table; and as a line of the list, after its name. */
  table(stored: Stored): string;
  line(stored: Stored): string;
  /** Additional options of `add`, and settings from files next to the added one. */
  addOptions?: readonly Option[];
  claims?(file: string, options: AddOptions): Promise<AddOptions>;
}

interface MakeOptions extends ServerOptions {
  positive: string;
  negative: string;
}

/** The activation of each text to use. */
export function positionOption(): Option {
  return choice("--position <which>", "activation to use per text: last token's or mean (default: last)", [
    "last",
    "mean",
  ]);
}

/** Many texts take many forward passes, each of which may be queued. */
export const makeTimeoutMs = 600_000;

export async function savedTools({ url }: ServerOptions, timeoutMs = 30_000) {
  const [{ Transport }, { print, printJson, writeOut }] = await Promise.all([
    import("../client/transport.js"),
    import("./output.js"),
  ]);
  return { http: new Transport(url, timeoutMs, { service: "serve" }), print, printJson, writeOut };
}

/** Opens a running server's saved items of one kind. */
export function serverShelf<Stored>(plural: string): (options: ServerOptions) => Promise<Shelf<Stored>> {
  const pathOf = (name: string) => `/lab/${plural}/${encodeURIComponent(name)}`;
  return async (options) => {
    const { http } = await savedTools(options);
    return {
      get: (name) => http.json(pathOf(name)),
      list: async () => (await http.json<Record<string, Stored[]>>(`/lab/${plural}`))[plural] ?? [],
      remove: async (name) =>
        (await http.json<{ deleted: boolean }>(pathOf(name), { method: "DELETE" })).deleted,
    };
  };
}

/** Commands for items saved by a server: make, list, show, add, export, rm. */
export function registerSaved<Stored extends { name: string }>(parent: Command, saved: Saved<Stored>): void {
  const { noun, makes, reads, writes } = saved;
  const plural = `${noun}s`;
  const pathOf = (name: string) => `/lab/${plural}/${encodeURIComponent(name)}`;
  const make = serverCommand(parent, "make", makes.description)
    .argument("<name>", "name: letters, digits, dots, dashes")
    .requiredOption("--positive <file>", makes.positive)
    .requiredOption("--negative <file>", makes.negative)
    .addHelpText("after", `\nExamples:\n  ${makes.example}`);
  for (const option of makes.options) make.addOption(option);
  make.action(async (name: string, { url, json, ...asked }: MakeOptions) => {
    const { readPrompts } = await import("./input-files.js");
    const { http, print, printJson } = await savedTools({ url }, makeTimeoutMs);
    const [positive, negative] = [await readPrompts(asked.positive), await readPrompts(asked.negative)];
    const body = { ...asked, name, positive, negative };
    const made = await http.json<Stored>(`/lab/${plural}`, { method: "POST", body });
    return json ? printJson(made) : print(saved.table(made));
  });
  const { registerRemoval } = registerShelf<Stored, ServerOptions>(parent, {
    ...{
      noun,
      plural,
      first: `Create one with tapline ${noun} make.`,
      command: serverCommand,
      line: saved.line,
      picture: saved.table,
    },
    open: serverShelf(plural),
  });
  const add = serverCommand(parent, "add", `Save a ${noun} from a file: ${reads}.`)
    .argument("<name>")
    .argument("<file>")
    .option("--layer <number>", "layer, if the file does not record one", integerBetween(0, 255))
    .option("--model <name>", "model, if the file does not record one (default: the running server's)")
    .option("--restamp", "accept a file made for a different model");
  for (const option of saved.addOptions ?? []) add.addOption(option);
  add.action(async (name: string, file: string, given: AddOptions) => {
    const options = (await saved.claims?.(file, given)) ?? given;
    const { readFile } = await import("node:fs/promises");
    const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
      throw new UsageError(`Cannot read ${file} (${error.code}).`);
    });
    const { http, print, printJson } = await savedTools(options);
    const query = new URLSearchParams({
      ...(options.layer !== undefined && { layer: String(options.layer) }),
      ...(options.model !== undefined && { model: options.model }),
      ...(options.format !== undefined && { format: options.format }),
      ...(options.entry !== undefined && { entry: options.entry }),
      ...(options.restamp && { restamp: "1" }),
    });
    const stored = await http.json<Stored>(`${pathOf(name)}?${query}`, { method: "PUT", body: bytes });
    return options.json ? printJson(stored) : print(saved.table(stored));
  });
  serverCommand(parent, "export", `Export a ${noun} to a file: ${writes.join(" or ")}.`)
    .argument("<name>")
    .argument("<file>")
    .action(async (name: string, file: string, options: ServerOptions) => {
      const form = /\.(\w+)$/.exec(basename(file))?.[1]?.toLowerCase() ?? "";
      if (!writes.some((written) => written.startsWith(`.${form}`) && form !== "")) {
        throw new UsageError(`${file}: a ${noun} can be exported as ${writes.join(" or ")}.`);
      }
      const { http, print, printJson, writeOut } = await savedTools(options);
      const bytes = await http.bytes(`${pathOf(name)}?format=${form}`);
      await writeOut(file, bytes);
      return options.json
        ? printJson({ name, file, bytes: bytes.length })
        : print(`${file} (${bytes.length} bytes)`);
    });
  registerRemoval();
}

export function figure(value: number | null | undefined, digits = 3): string {
  return value == null ? "-" : value.toFixed(digits);
}

/** Items saved on this machine. */
export type LocalItems<Stored extends { name: string }> = Pick<
  Looks<Stored, { json?: boolean }>,
  "noun" | "plural" | "open" | "line" | "picture"
>;

/** A subcommand of one of the kinds, with --json. */
export function localCommand(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).option("--json", "print the result as JSON");
}

/** Commands for items saved on this machine: list, show, rm. */
export function registerLocal<Stored extends { name: string }>(
  parent: Command,
  saved: LocalItems<Stored>,
): void {
  const first = `Save one with tapline ${saved.noun} add.`;
  const shows = ": its layer, settings and source";
  registerShelf(parent, { ...saved, first, shows, command: localCommand }).registerRemoval();
}

/** @throws UsageError for an invalid name */
export async function checkName(name: string): Promise<void> {
  const { liveLimits, namePattern } = await import("../contracts/live-limits.js");
  const most = liveLimits.name_characters;
  if (new RegExp(namePattern).test(name) && name.length <= most) return;
  throw new UsageError(
    `A name must consist of up to ${most} letters, digits, dots or dashes, got ${JSON.stringify(name)}.`,
  );
}

type FromHub = import("../library/layout-files.js").FromHub;

/**
 * Runs work that may download from the hub, with a progress line.
 * @returns undefined if Ctrl-C stopped it
 */
export async function withHub<T>(
  revision: string | undefined,
  add: (fromHub: FromHub) => Promise<T>,
): Promise<T | undefined> {
  const stopped = stopSignal();
  const [{ resolveHubPlace }, { downloading }] = await Promise.all([
    import("../models/hub/index.js"),
    import("./download-line.js"),
  ]);
  return downloading(stopped, "add", (download) =>
    add((asked, choose) =>
      resolveHubPlace(asked, choose, { ...download, ...(revision !== undefined && { revision }) }),
    ),
  );
}
