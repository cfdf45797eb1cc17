import { basename } from "node:path";
import type { Command, Option } from "commander";
import { UsageError } from "./exit-code.js";
import { choice, integerBetween } from "./options.js";
import { type ServerOptions, serverCommand } from "./server-command.js";
import { stopSignal } from "./stop-signal.js";

/** Stored things of one kind, by name, as commands use them. */
interface Shelf<Stored> {
  get(name: string): Promise<Stored>;
  list(): Promise<Stored[]>;
  remove(name: string): Promise<boolean>;
}

interface Looks<Stored extends { name: string }, Options extends { json?: boolean }> {
  noun: string;
  plural: string;
  /** Command that makes the first one; and what `show` adds to its description. */
  first: string;
  shows?: string;
  command(parent: Command, name: string, description: string): Command;
  open(options: Options): Promise<Shelf<Stored>>;
  /** One of them as a line of the list, behind its name; and as what `show` and `add` print. */
  line(stored: Stored): string;
  picture(stored: Stored): string;
}

/** What can be done with every kind of them: list, show, and, once the others are registered, rm. */
function registerLooks<Stored extends { name: string }, Options extends { json?: boolean }>(
  parent: Command,
  { noun, plural, first, shows = "", command, open, line, picture }: Looks<Stored, Options>,
): { registerRemoval(): void } {
  const shelfOf = (options: Options) => Promise.all([open(options), import("./output.js")]);
  command(parent, "list", `List the ${plural} that are kept.`).action(async (options: Options) => {
    const [shelf, { print, printJson }] = await shelfOf(options);
    const all = await shelf.list();
    if (options.json) return printJson({ [plural]: all });
    const lines = all.map((stored) => `${stored.name.padEnd(24)} ${line(stored)}`);
    return print(
      lines.length === 0 ? `There are no ${plural} yet; tapline ${noun} ${first}.` : lines.join("\n"),
    );
  });
  command(parent, "show", `Show one ${noun}${shows}.`)
    .argument("<name>")
    .action(async (name: string, options: Options) => {
      const [shelf, { print, printJson }] = await shelfOf(options);
      const stored = await shelf.get(name);
      return options.json ? printJson(stored) : print(picture(stored));
    });
  const registerRemoval = () =>
    void command(parent, "rm", `Forget a ${noun}.`)
      .argument("<name>")
      .action(async (name: string, options: Options) => {
        const [shelf, { print, printJson }] = await shelfOf(options);
        if (!(await shelf.remove(name))) throw new UsageError(`There is no ${noun} named ${name}.`);
        return options.json ? printJson({ deleted: true }) : print(`${name} is forgotten.`);
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

/** One kind of thing that a server keeps by name. */
export interface Kept<Stored extends { name: string }> {
  noun: "vector" | "probe";
  /** How one is made of texts: its further options have the names of the request's fields. */
  makes: {
    description: string;
    positive: string;
    negative: string;
    options: readonly Option[];
    example: string;
  };
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

interface MakeOptions extends ServerOptions {
  positive: string;
  negative: string;
}

/** Which rows of a text something is made of. */
export function positionOption(): Option {
  return choice("--position <which>", "state of each text (default: last)", ["last", "mean"]);
}

/** Many texts are many forward passes, and each waits for its turn. */
export const makeTimeoutMs = 600_000;

export async function keptTools({ url }: ServerOptions, timeoutMs = 30_000) {
  const [{ Transport }, { print, printJson, writeOut }] = await Promise.all([
    import("../client/transport.js"),
    import("./output.js"),
  ]);
  return { http: new Transport(url, timeoutMs, { service: "serve" }), print, printJson, writeOut };
}

/** What can be done with what a server keeps: make, list, show, add, export, rm. */
export function registerKept<Stored extends { name: string }>(parent: Command, kept: Kept<Stored>): void {
  const { noun, makes, reads, writes } = kept;
  const plural = `${noun}s`;
  const pathOf = (name: string) => `/lab/${plural}/${encodeURIComponent(name)}`;
  const make = serverCommand(parent, "make", makes.description)
    .argument("<name>", "letters, digits, dots, dashes")
    .requiredOption("--positive <file>", makes.positive)
    .requiredOption("--negative <file>", makes.negative)
    .addHelpText("after", `\nExamples:\n  ${makes.example}`);
  for (const option of makes.options) make.addOption(option);
  make.action(async (name: string, { url, json, ...asked }: MakeOptions) => {
    const { readPrompts } = await import("./input-files.js");
    const { http, print, printJson } = await keptTools({ url }, makeTimeoutMs);
    const [positive, negative] = [await readPrompts(asked.positive), await readPrompts(asked.negative)];
    const body = { ...asked, name, positive, negative };
    const made = await http.json<Stored>(`/lab/${plural}`, { method: "POST", body });
    return json ? printJson(made) : print(kept.table(made));
  });
  const { registerRemoval } = registerLooks<Stored, ServerOptions>(parent, {
    ...{
      noun,
      plural,
      first: "make makes one",
      command: serverCommand,
      line: kept.line,
      picture: kept.table,
    },
    async open(options) {
      const { http } = await keptTools(options);
      return {
        get: (name) => http.json(pathOf(name)),
        list: async () => (await http.json<Record<string, Stored[]>>(`/lab/${plural}`))[plural] ?? [],
        remove: async (name) =>
          (await http.json<{ deleted: boolean }>(pathOf(name), { method: "DELETE" })).deleted,
      };
    },
  });
  const add = serverCommand(parent, "add", `Keep a ${noun} from a file: ${reads}.`)
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
  serverCommand(parent, "export", `Write a ${noun} to a file: ${writes.join(" or ")}.`)
    .argument("<name>")
    .argument("<file>")
    .action(async (name: string, file: string, options: ServerOptions) => {
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
  registerRemoval();
}

export function figure(value: number | null | undefined, digits = 3): string {
  return value == null ? "-" : value.toFixed(digits);
}

/** What this machine keeps. */
export type KeptHere<Stored extends { name: string }> = Pick<
  Looks<Stored, { json?: boolean }>,
  "noun" | "plural" | "open" | "line" | "picture"
>;

/** A command below one of the kinds, which can print what it says as JSON. */
export function hereCommand(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).option("--json", "print it as JSON, for programs");
}

/** What can be done with what is kept here: list, show, rm. */
export function registerKeptHere<Stored extends { name: string }>(
  parent: Command,
  kept: KeptHere<Stored>,
): void {
  const told = { first: "add keeps one", shows: ": what it reads, how, from where" };
  registerLooks(parent, { ...kept, ...told, command: hereCommand }).registerRemoval();
}

/** @throws UsageError for what nothing can be called */
export async function checkName(name: string): Promise<void> {
  const { liveLimits, namePattern } = await import("../contracts/live-limits.js");
  const most = liveLimits.name_characters;
  if (new RegExp(namePattern).test(name) && name.length <= most) return;
  throw new UsageError(
    `A name has up to ${most} letters, digits, dots, dashes, got ${JSON.stringify(name)}.`,
  );
}

type FromHub = import("../library/layout-files.js").FromHub;

/**
 * Runs what may download from the hub, with a line that says how far it is.
 * @returns nothing where Ctrl-C stopped it
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
