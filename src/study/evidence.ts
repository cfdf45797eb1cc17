import { randomUUID } from "node:crypto";
import { type Entry, studyLimits } from "../contracts/studies/index.js";
import { characters, cut } from "../text/words.js";

/** The contribution of one job or execution to a package. */
export interface Evidence {
  model: { name: string; revision: string | null; runtime: string };
  /** The method in one or two sentences. */
  method: string;
  entries: Entry[];
  /** Groups of entries that can be dropped if the package is too large. */
  spare: Spare[];
  omissions: string[];
}

export interface Spare {
  /** What is dropped, as the subject of a sentence. */
  what: string;
  ids: string[];
}

type Fields = Omit<Entry, "id">;

/** Collects the entries of one piece of evidence, with every field within its limit. */
export class Gatherer {
  readonly entries: Entry[] = [];
  readonly spare: Spare[] = [];
  readonly omissions: string[] = [];

  /** @returns the new entry's id, for entries below it */
  add(fields: Fields, what = fields.title): string {
    const id = randomUUID();
    const entry: Entry = { ...fields, id, title: cut(fields.title, studyLimits.entry_title) };
    for (const name of ["system", "prompt", "answer", "thinking", "note"] as const) {
      const text = entry[name];
      if (text === undefined) continue;
      const length = characters(text);
      if (length <= studyLimits.long_text) continue;
      entry[name] = cut(text, studyLimits.long_text);
      this.omissions.push(
        `The ${name} of “${cut(what, 200)}” is truncated to ${studyLimits.long_text} of its ${length} characters.`,
      );
    }
    this.entries.push(entry);
    return id;
  }

  /**
   * Splits a long text over several notes, whose concatenation is the text. They are dropped if the package is too large.
   */
  addText(parent: string, title: string, text: string, what: string): void {
    const points = Array.from(text);
    const parts = Math.max(1, Math.ceil(points.length / studyLimits.long_text));
    const ids = Array.from({ length: parts }, (_, index) =>
      this.add({
        parent,
        kind: "note",
        title: parts === 1 ? title : `${title}, part ${index + 1} of ${parts}`,
        note: points.slice(index * studyLimits.long_text, (index + 1) * studyLimits.long_text).join(""),
      }),
    );
    this.spare.push({ what, ids });
  }
}
