import type { Command } from "commander";
import { UsageError } from "./exit-code.js";
import { stopSignal } from "./stop-signal.js";

/** Things of one kind that this machine keeps by name, as far as commands look at them. */
interface Shelf<Stored> {
  get(name: string): Promise<Stored>;
  list(): Promise<Stored[]>;
  remove(name: string): Promise<boolean>;
}

export interface KeptHere<Stored extends { name: string }> {
  noun: string;
  plural: string;
  open(): Promise<Shelf<Stored>>;
  /** One of them as a line of the list, behind its name; and as what `show` and `add` print. */
  line(stored: Stored): string;
  picture(stored: Stored): string;
}

interface JsonOption {
  json?: boolean;
}

/** A command below one of the kinds, which can print what it says as JSON. */
export function hereCommand(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).option("--json", "print it as JSON, for programs");
}

/** What can be done with what is kept here: list, show, rm. */
export function registerKeptHere<Stored extends { name: string }>(
  parent: Command,
  { noun, plural, open, line, picture }: KeptHere<Stored>,
): void {
  hereCommand(parent, "list", `List the ${plural} that are kept.`).action(async ({ json }: JsonOption) => {
    const [shelf, { print, printJson }] = await Promise.all([open(), import("./output.js")]);
    const all = await shelf.list();
    if (json) return printJson({ [plural]: all });
    const lines = all.map((stored) => `${stored.name.padEnd(24)} ${line(stored)}`);
    return print(
      lines.length === 0 ? `There are no ${plural} yet; tapline ${noun} add keeps one.` : lines.join("\n"),
    );
  });
  hereCommand(parent, "show", `Show one ${noun}: what it reads, how, from where.`)
    .argument("<name>")
    .action(async (name: string, { json }: JsonOption) => {
      const [shelf, { print, printJson }] = await Promise.all([open(), import("./output.js")]);
      const stored = await shelf.get(name);
      return json ? printJson(stored) : print(picture(stored));
    });
  hereCommand(parent, "rm", `Forget a ${noun}.`)
    .argument("<name>")
    .action(async (name: string, { json }: JsonOption) => {
      const [shelf, { print, printJson }] = await Promise.all([open(), import("./output.js")]);
      if (!(await shelf.remove(name))) throw new UsageError(`There is no ${noun} named ${name}.`);
      return json ? printJson({ deleted: true }) : print(`${name} is forgotten.`);
    });
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
