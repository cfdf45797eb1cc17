import type { Edit } from "./views/edits.js";

/** What the next answers are given with; it stays when one goes from conversation to conversation and to other views. */
export const chatSettings: {
  edits: Edit[];
  pair: boolean;
  temperature: number;
  tokens: number;
  /** `on`, `off`, or as the server likes. */
  thinking: string;
  /** A probe that reads every token, where one is named. */
  watch: string;
  /** A dictionary whose features are read in every token, where one is named. */
  dictionary: string;
  /** Whether complete answers are read as Markdown. */
  markdown: boolean;
} = {
  edits: [],
  pair: true,
  temperature: 0,
  tokens: 128,
  thinking: "",
  watch: "",
  dictionary: "",
  markdown: true,
};
