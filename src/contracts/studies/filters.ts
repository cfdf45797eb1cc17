import { operations } from "../../operations/contracts.js";
import { studyLimits as limits } from "./limits.js";
import { licenses } from "./package.js";

/** Sort orders of a list; without a search, `relevance` is the same as `new`. */
export const studyOrders = ["relevance", "new", "top", "discussed"] as const;
export type StudyOrder = (typeof studyOrders)[number];

/** Filters of a list of studies, as query parameters; a study must match all of them. */
export const studyFilters = {
  model: {
    description: "Exact name of the model.",
    schema: { type: "string", minLength: 1, maxLength: limits.model_name },
  },
  license: { description: "License of the study.", schema: { type: "string", enum: [...licenses] } },
  method: {
    description: "Operation of a machine-readable result in the study.",
    schema: { type: "string", enum: [...operations] },
  },
  author: {
    description: "Handle of the author.",
    schema: { type: "string", pattern: "^[a-z0-9-]{1,100}$" },
  },
  year: {
    description: "Year of the current version's publication, in UTC.",
    schema: { type: "string", pattern: "^[12]\\d{3}$" },
  },
  reproduced: {
    description: "Whether a published study reports reproducing it.",
    schema: { type: "string", enum: ["yes"] },
  },
  sort: {
    description:
      "Best match first (`relevance`, of a search), newest publication first (`new`), most upvotes of the current " +
      "version first, or most comments first.",
    schema: { type: "string", enum: [...studyOrders], default: "relevance" },
  },
} as const;
export type StudyFilterName = keyof typeof studyFilters;
export const studyFilterNames = Object.keys(studyFilters) as StudyFilterName[];

/** The rule that a value violates, in words; null if it is valid. */
export function brokenFilter(name: StudyFilterName, value: string): string | null {
  const rule: { enum?: readonly string[]; pattern?: string; maxLength?: number } = studyFilters[name].schema;
  const { enum: allowed, pattern, maxLength } = rule;
  if (allowed !== undefined) return allowed.includes(value) ? null : `must be one of ${allowed.join(", ")}`;
  if (pattern !== undefined) {
    const what = name === "year" ? "a year of four digits" : "a handle";
    return new RegExp(pattern).test(value) ? null : `must be ${what}`;
  }
  const length = [...value].length;
  return length >= 1 && length <= (maxLength as number) ? null : `must have 1 to ${maxLength} characters`;
}
