import { changed } from "./store.js";
import type { Edit } from "./views/edits.js";

/** Settings of the next answers, shared by all conversations and kept while other views are open. */
export const chatSettings: {
  edits: Edit[];
  pair: boolean;
  temperature: number;
  tokens: number;
  /** `on`, `off`, or empty for the server default. */
  thinking: string;
  /** The name of a probe that reads every token; empty for none. */
  watch: string;
  /** The name of a dictionary whose features are read at every token; empty for none. */
  dictionary: string;
  /** The system message; empty for none. */
  system: string;
  /** The name of a profile that the answers run with; empty for none. */
  profile: string;
  /** Whether complete answers are rendered as Markdown. */
  markdown: boolean;
} = {
  edits: [],
  pair: true,
  temperature: 0,
  tokens: 128,
  thinking: "",
  watch: "",
  dictionary: "",
  system: "",
  profile: "",
  markdown: true,
};

export function addEdit(edit: Edit): void {
  chatSettings.edits = [...chatSettings.edits, edit];
  changed("settings");
}
