/** One member of a JSON object: its name, and where its value begins and ends. */
export interface Member {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

/**
 * The members of a JSON object, without parsing their values: the request is forwarded byte for byte, and validating it is
 * the backend's job. Null if the text is not an object.
 */
export function membersOf(text: Uint8Array): Member[] | null {
  const members: Member[] = [];
  let at = skipSpace(text, 0);
  if (text[at++] !== openBrace) return null;
  at = skipSpace(text, at);
  if (text[at] === closeBrace) return skipSpace(text, at + 1) === text.length ? members : null;
  for (;;) {
    if (text[at] !== quote) return null;
    const nameEnd = skipString(text, at);
    const name = stringAt(text, at, nameEnd);
    at = skipSpace(text, nameEnd);
    if (name === null || text[at] !== colon) return null;
    const start = skipSpace(text, at + 1);
    const end = skipValue(text, start);
    if (end <= start) return null;
    members.push({ name, start, end });
    at = skipSpace(text, end);
    const next = text[at++];
    if (next === closeBrace) return skipSpace(text, at) === text.length ? members : null;
    if (next !== comma) return null;
    at = skipSpace(text, at);
  }
}

/** The parsed value of a member; undefined if absent or not JSON. The last duplicate counts, as in JSON.parse. */
export function memberValue(text: Uint8Array, members: readonly Member[], name: string): unknown {
  const member = members.findLast((candidate) => candidate.name === name);
  return member === undefined ? undefined : parsed(text, member.start, member.end);
}

/** The same text with every member of that name replaced, or with a new first member. */
export function withString(
  text: Uint8Array,
  members: readonly Member[],
  name: string,
  value: string,
): Uint8Array {
  const written = Buffer.from(JSON.stringify(value));
  const found = members.filter((member) => member.name === name);
  const parts: Uint8Array[] = [];
  let at = 0;
  for (const { start, end } of found) {
    parts.push(text.subarray(at, start), written);
    at = end;
  }
  if (found.length === 0) {
    const inside = text.indexOf(openBrace) + 1;
    const rest = members.length > 0 ? "," : "";
    parts.push(text.subarray(0, inside), Buffer.from(`${JSON.stringify(name)}:`), written, Buffer.from(rest));
    at = inside;
  }
  return Buffer.concat([...parts, text.subarray(at)]);
}

function skipSpace(text: Uint8Array, from: number): number {
  let at = from;
  for (;;) {
    const c = text[at];
    if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return at;
    at++;
  }
}

/** The position after the string that begins at `from`; beyond the text if it is unterminated. */
function skipString(text: Uint8Array, from: number): number {
  let at = from + 1;
  while (at < text.length) {
    const c = text[at];
    if (c === quote) return at + 1;
    at += c === backslash ? 2 : 1;
  }
  return text.length + 1;
}

/** The position after the value that begins at `from`; `from` itself if there is none. */
function skipValue(text: Uint8Array, from: number): number {
  let depth = 0;
  let at = from;
  while (at < text.length) {
    const c = text[at];
    if (c === quote) {
      at = skipString(text, at);
      if (depth === 0) return at;
    } else if (c === openBrace || c === openBracket) {
      depth++;
      at++;
    } else if (c === closeBrace || c === closeBracket) {
      if (depth === 0) return at;
      at++;
      if (--depth === 0) return at;
    } else if (depth === 0 && (c === comma || c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09)) {
      return at;
    } else {
      at++;
    }
  }
  return from;
}

function stringAt(text: Uint8Array, start: number, end: number): string | null {
  const value = parsed(text, start, end);
  return typeof value === "string" ? value : null;
}

function parsed(text: Uint8Array, start: number, end: number): unknown {
  try {
    return JSON.parse(Buffer.from(text.buffer, text.byteOffset + start, end - start).toString());
  } catch {
    return undefined;
  }
}
