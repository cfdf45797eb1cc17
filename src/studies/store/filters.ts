import { type Expression, type ExpressionBuilder, type SqlBool, sql } from "kysely";
import type { Operation } from "../../contracts/index.js";
import {
  type StudyFilterName,
  type StudyOrder,
  type StudyPackage,
  studyFilterNames,
} from "../../contracts/studies/index.js";
import type { Database } from "./schema.js";

/** Filters for studies; all given ones must match. */
export interface Filters {
  /** Exact model name. */
  model?: string;
  license?: StudyPackage["license"];
  /** Operation whose results the study reports. */
  method?: Operation;
  /** Author's handle. */
  author?: string;
  /** Publication year of the current version, in UTC. */
  year?: number;
  /** Whether a listed study reproduces it. */
  reproduced?: true;
}

export type Order = StudyOrder;

/** Filters and order from valid parameters. */
export function narrowing(get: (name: StudyFilterName) => string | undefined): {
  filters: Filters;
  order: Order;
} {
  const { model, license, method, author, year, reproduced, sort } = Object.fromEntries(
    studyFilterNames.map((name) => [name, get(name)]),
  ) as Partial<Record<StudyFilterName, string>>;
  const filters: Filters = {
    ...(model === undefined ? {} : { model }),
    ...(license === undefined ? {} : { license: license as StudyPackage["license"] }),
    ...(method === undefined ? {} : { method: method as Operation }),
    ...(author === undefined ? {} : { author }),
    ...(year === undefined ? {} : { year: Number(year) }),
    ...(reproduced === undefined ? {} : { reproduced: true }),
  };
  return { filters, order: (sort ?? "relevance") as Order };
}

/** A cache key for filters; empty if there are none. */
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
