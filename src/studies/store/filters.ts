import { type Expression, type ExpressionBuilder, type SqlBool, sql } from "kysely";
import type { Operation } from "../../contracts/index.js";
import type { StudyPackage } from "../../contracts/studies/index.js";
import type { Database } from "./schema.js";

/** What studies can be narrowed down by; all that is given must hold. */
export interface Filters {
  /** Name of the model, exactly. */
  model?: string;
  license?: StudyPackage["license"];
  /** Operation whose results the study tells. */
  method?: Operation;
  /** Handle of who published it. */
  author?: string;
  /** Of the current version's publication, in UTC. */
  year?: number;
  /** Whether a study that stands says that it repeats it. */
  reproduced?: true;
}

/** In which order studies come; `relevance` is that of a search, and `new` without one. */
export const orders = ["relevance", "new", "top", "discussed"] as const;
export type Order = (typeof orders)[number];

/** Names a set of filters; empty for none. */
export function filterKey(filters: Filters): string {
  const given = Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1));
  return given.length === 0 ? "" : JSON.stringify(given);
}

/** Conditions on rows of `studies`, unqualified names included. */
export function filterConditions(filters: Filters): Expression<SqlBool>[] {
  const { model, license, method, author, year, reproduced } = filters;
  const found: Expression<SqlBool>[] = [];
  if (model !== undefined) found.push(sql<SqlBool>`studies.model_name = ${model}`);
  if (license !== undefined) found.push(sql<SqlBool>`studies.license = ${license}`);
  if (method !== undefined) found.push(sql<SqlBool>`studies.methods like ${`% ${method} %`}`);
  if (author !== undefined) {
    found.push(
      sql<SqlBool>`studies.account_id = (select accounts.id from accounts where accounts.handle = ${author})`,
    );
  }
  if (year !== undefined) {
    found.push(
      sql<SqlBool>`studies.published_at >= ${Date.UTC(year, 0)} and studies.published_at < ${Date.UTC(year + 1, 0)}`,
    );
  }
  if (reproduced) {
    found.push(sql<SqlBool>`studies.id in (
      select reproductions.original_id from reproductions
      inner join studies as repeating on repeating.id = reproductions.study_id
        and repeating.version = reproductions.version and repeating.listed = 1)`);
  }
  return found;
}

/** All conditions together, for kysely's `where`. */
export function matchesAll(filters: Filters) {
  return (eb: ExpressionBuilder<Database, "studies">) => eb.and(filterConditions(filters));
}
