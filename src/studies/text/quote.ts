import { firstCharacters } from "./display.js";

/** Of what is quoted. */
const mostCharacters = 800;
const mostLines = 12;

/**
 * A text as a quotation in Markdown that says whose it is, with room for an answer below it.
 * @param source whose words they are, and where they stand: an absolute address
 */
export function quotation(text: string, source: { name: string; address: string }): string {
  const cut = firstCharacters(text.trim(), mostCharacters);
  const lines = cut.split("\n");
  const more = cut.length < text.trim().length || lines.length > mostLines;
  const quoted = lines.slice(0, mostLines).map((line) => `> ${line}`.trimEnd());
  return [
    `> [${literal(source.name)}](${source.address})`,
    ">",
    ...quoted,
    ...(more ? ["> …"] : []),
    "",
    "",
  ].join("\n");
}

/** A text that Markdown leaves as it is. By number, because a backslash before a bracket begins a formula. */
function literal(text: string): string {
  return text.replace(/\s+/g, " ").replace(/[\\`*_[\]()<>&$|~]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
