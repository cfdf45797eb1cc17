import type { Figure } from "../findings/figure.js";
import type { Html } from "./markup.js";

/** A section of text, without a figure. */
export interface Passage {
  id: string;
  title: string;
  description: string;
  /** Rendered on access, because not every page shows it. */
  readonly body: Html;
}

/** The findings of a job. */
export interface Findings {
  /** The result in sentences, without interpretation. */
  summary: string[];
  /** What the result does not show. */
  cautions: string[];
  parts: (Figure | Passage)[];
}
