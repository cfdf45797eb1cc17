import { LiveRequest } from "./live.js";

/** The field of a request body that holds edits and readings. It is never silently ignored. */
export const liveField = "tapline";

/** A refused field of a body, and the reason. */
export interface FieldFault {
  field: string;
  sentence: string;
}

/**
 * Finds a `tapline` object that would be ignored: on a path that does not support it, under a misspelled name, or in
 * an `extra_body`, which OpenAI's Python client merges into the body before sending.
 * @param runs whether the path supports edits and readings
 */
export function liveFieldFault(body: object, runs: boolean): FieldFault | null {
  for (const [field, value] of Object.entries(body)) {
    if (value === null) continue;
    const fault = disguisedLiveField(field, () => value);
    if (fault !== null) return fault;
    if (plain(field) === "extra_body") return { field, sentence: notMerged };
    if (field === liveField && !runs) return { field, sentence: elsewhere };
  }
  return null;
}

/**
 * Checks one field for a `tapline` object that servers would not find.
 * @param read returns the field's value; called only if the name is suspicious
 */
export function disguisedLiveField(field: string, read: () => unknown): FieldFault | null {
  const name = plain(field);
  if (name === liveField && field !== liveField) {
    if ((read() ?? null) === null) return null;
    const shown = JSON.stringify(field.slice(0, 60));
    return { field, sentence: `${shown}: the field is named tapline, in lower case and without spaces.` };
  }
  const suspicious = name === "extra_body" || (name !== liveField && resembles(name));
  const value = suspicious ? read() : null;
  if (typeof value !== "object" || value === null) return null;
  const keys = Object.keys(value);
  if (name === "extra_body") {
    return keys.some((key) => plain(key) === liveField) ? { field, sentence: notMerged } : null;
  }
  const shown = JSON.stringify(field.slice(0, 60));
  return keys.some((key) => own.has(key))
    ? { field, sentence: `${shown}: the object for edits and readings is named tapline.` }
    : null;
}

/** Fields of the object. */
const own: ReadonlySet<string> = new Set(Object.keys(LiveRequest.properties));

/** Whether at most two letters of the name are missing, added or different. */
function resembles(name: string): boolean {
  if (Math.abs(name.length - liveField.length) > 2) return false;
  let row = Array.from({ length: liveField.length + 1 }, (_, at) => at);
  for (const [at, letter] of [...name].entries()) {
    const next = [at + 1];
    for (let place = 1; place < row.length; place++) {
      const replaced = (row[place - 1] as number) + Number(liveField[place - 1] !== letter);
      next.push(Math.min(replaced, (row[place] as number) + 1, (next[place - 1] as number) + 1));
    }
    row = next;
  }
  return (row[liveField.length] as number) <= 2;
}

const notMerged =
  "extra_body: servers do not read this field; put its fields directly into the body, as OpenAI's Python client does.";

const elsewhere =
  "tapline: this path does not support edits or readings; use " +
  "/v1/chat/completions, /v1/completions, /v1/responses or /v1/messages.";

function plain(name: string): string {
  return name.trim().toLowerCase();
}
