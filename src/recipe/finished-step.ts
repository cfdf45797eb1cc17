import type { Evidence } from "../study/index.js";

/** A finished step of a recipe's run. */
export interface Step {
  id: string;
  what: string;
  result: unknown;
  /** Its page. */
  page(): Promise<string>;
  evidence: Evidence;
}
