import type { Command } from "commander";
import type { ProfileRequest, ProfileSettings, StoredProfile } from "../../contracts/profile.js";
import { UsageError } from "../exit-code.js";
import { registerShelf, savedTools, serverShelf } from "../saved.js";
import { type ServerOptions, serverCommand } from "../server-command.js";
import { type Steering, steering, steeringEdit } from "../steering.js";

interface MakeOptions extends ServerOptions {
  from?: string;
  steer?: Steering[];
  description?: string;
}

/** `tapline profile`: edits and readings under a name, which requests choose as MODEL@NAME. */
export function registerProfile(program: Command): void {
  const profile = program
    .command("profile")
    .description(
      "Manage profiles, saved edits that requests choose as MODEL@NAME: make, list, show, remove.",
    );
  serverCommand(profile, "make", "Save edits and readings as a profile of the running server's model.")
    .argument("<name>", "name: letters, digits, dots, dashes")
    .option(
      "--from <file>",
      "JSON file with a tapline object: interventions, watch, stop_when (- for standard input)",
    )
    .option(
      "--steer <vector:strength>",
      "steer along a saved vector; strength is relative to the activation's norm; repeatable",
      steering,
    )
    .option("--description <text>", "what the profile does; /v1/models shows it")
    .addHelpText(
      "after",
      `
Requests whose model is MODEL@NAME then run with these edits. Programs on this
machine can use every profile, other machines only those that the server offers:
tapline serve --profile NAME.

Examples:
  tapline profile make polite --steer polite:0.2
  tapline profile make truthful --from edits.json --description "No flattery."
  tapline chat --profile polite`,
    )
    .action(make);
  const { registerRemoval } = registerShelf<StoredProfile, ServerOptions>(profile, {
    noun: "profile",
    plural: "profiles",
    first: "Create one with tapline profile make.",
    command: serverCommand,
    open: serverShelf("profiles"),
    line: ({ model, description, changed }) =>
      [
        model?.id ?? "any model",
        ...(changed.length > 0 ? ["not served"] : []),
        ...(description ? [description] : []),
      ].join(", "),
    picture,
  });
  registerRemoval();
}

async function make(name: string, { url, json, from, steer = [], description }: MakeOptions): Promise<void> {
  if (from === undefined && steer.length === 0) throw new UsageError("Pass --from or --steer.");
  const given = from === undefined ? {} : await settingsIn(from);
  const interventions = [...(given.interventions ?? []), ...steer.map(steeringEdit)];
  const body: ProfileRequest = {
    ...(description !== undefined && { description }),
    tapline: { ...given, ...(interventions.length > 0 && { interventions }) },
  };
  const { http, print, printJson } = await savedTools({ url });
  const path = `/lab/profiles/${encodeURIComponent(name)}`;
  const stored = await http.json<StoredProfile>(path, { method: "PUT", body });
  return json ? printJson(stored) : print(picture(stored));
}

/** A file's settings; the server validates them. @throws UsageError */
async function settingsIn(file: string): Promise<ProfileSettings> {
  const { readInput } = await import("../input-files.js");
  let found: unknown;
  try {
    found = JSON.parse(await readInput(file));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(`${file} is not valid JSON: ${error.message}`);
  }
  // A request's body contains the object as a field.
  const inside = (found as { tapline?: unknown } | null)?.tapline ?? found;
  if (typeof inside !== "object" || inside === null || Array.isArray(inside)) {
    throw new UsageError(`${file} must contain a JSON object with interventions, watch or stop_when.`);
  }
  return inside as ProfileSettings;
}

function picture({ name, description, model, uses, changed, tapline }: StoredProfile): string {
  return [
    `${name}  ${model?.id ?? "any model"}`,
    ...(description === "" ? [] : [description]),
    ...uses.map(({ kind, name: used, sha256 }) => `${kind.padEnd(12)}${used}  ${sha256.slice(0, 16)}`),
    JSON.stringify(tapline, null, 2),
    ...changed,
  ].join("\n");
}
