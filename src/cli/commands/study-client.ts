import type { ResearchClient } from "../../client/index.js";
import { researchEnvironment as names } from "../../contracts/research.js";
import { hiddenCharacters } from "../../text/hidden.js";
import { UsageError } from "../exit-code.js";
import { print } from "../output.js";

/** Help on how to reach the studies service. */
export const environmentHelp = `
Environment:
  ${names.url}      https address of the studies service
  ${names.token}    token from its "Agent access" page
  ${names.caFile}  PEM file to trust instead of the system's CAs`;

/** A client from the environment's settings. @throws UsageError if they are missing or invalid */
export async function researchClient(): Promise<ResearchClient> {
  const { ResearchClient, ResearchError } = await import("../../client/index.js");
  try {
    return new ResearchClient();
  } catch (error) {
    throw error instanceof ResearchError ? new UsageError(error.message) : error;
  }
}

/**
 * Untrusted text as lines that are safe to write to a terminal: characters that move the cursor, start an escape
 * sequence or are invisible are written as <U+202E>.
 */
export function safeLines(text: string): string[] {
  return text.split(/\r\n|\n/).map((line) =>
    line
      .replace(/\t/g, "  ")
      .replace(/\r/g, "<U+000D>")
      .replace(hiddenCharacters, (character) => {
        const code = (character.codePointAt(0) as number).toString(16).toUpperCase();
        return `<U+${code.padStart(4, "0")}>`;
      }),
  );
}

/** Prints JSON that is exact and safe in a terminal: hidden characters become JSON escapes. */
export function printStudyJson(value: unknown): Promise<void> {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const text = JSON.stringify(value, null, 2);
  return print(text.replace(hiddenCharacters, (character) => character.split("").map(escaped).join("")));
}
