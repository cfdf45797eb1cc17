import type { Figure } from "../findings/figure.js";
import type { Html } from "./markup.js";

/** Text beside the pictures: what is read and not drawn. */
export interface Passage {
  id: string;
  title: string;
  description: string;
  /** Made when it is read: not every page shows passages. */
  readonly body: Html;
}

/** What a report says about one kind of experiment. */
export interface Findings {
  /** The result in sentences, without judgement. */
  summary: string[];
  /** What it does not show. */
  cautions: string[];
  parts: (Figure | Passage)[];
}
