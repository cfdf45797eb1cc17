import { firstCharacters } from "./display.js";

/** Size limits of a quotation. */
const mostCharacters = 800;
const mostLines = 12;

/**
 * A Markdown quotation with its source, followed by space for a reply.
 * @param source name and absolute URL of the source
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

/** Escapes Markdown with character references, because a backslash before a bracket starts a formula. */
function literal(text: string): string {
  return text.replace(/\s+/g, " ").replace(/[\\`*_[\]()<>&$|~]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
