/** The field of a body that opens the model. A body never holds one that is ignored. */
export const liveField = "tapline";

/** A field of a body that is refused, and why. */
export interface FieldFault {
  field: string;
  sentence: string;
}

/**
 * Looks for a `tapline` object that would be ignored: at a path that runs none, under a name that is written differently,
 * or in an `extra_body`, which OpenAI's client for Python merges into the body before it sends.
 * @param runs whether the path runs edits and readings
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
 * Looks at one field for a `tapline` object that no server would find.
 * @param read gives the field's value; called only where the name is suspicious
 */
export function disguisedLiveField(field: string, read: () => unknown): FieldFault | null {
  const name = plain(field);
  if (name === liveField && field !== liveField) {
    if ((read() ?? null) === null) return null;
    const shown = JSON.stringify(field.slice(0, 60));
    return { field, sentence: `${shown}: the field is called tapline, in lower case and without spaces.` };
  }
  const value = name === "extra_body" ? read() : null;
  if (typeof value !== "object" || value === null) return null;
  return Object.keys(value).some((key) => plain(key) === liveField) ? { field, sentence: notMerged } : null;
}

const notMerged =
  "extra_body: servers do not read this field; put its fields into the body itself, as OpenAI's client for Python does.";

const elsewhere =
  "tapline: this path runs no edits and no readings; " +
  "/v1/chat/completions, /v1/completions, /v1/responses and /v1/messages do.";

function plain(name: string): string {
  return name.trim().toLowerCase();
}
