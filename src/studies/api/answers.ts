import type { Context } from "koa";
import type {
  Discussion,
  DraftCreated,
  StudyEnvelope,
  StudyPage,
  StudySummary,
} from "../../contracts/studies/index.js";
import { studyFilterNames, studyLimits } from "../../contracts/studies/index.js";
import { ApiError } from "../api-error.js";
import type { Service } from "../service.js";
import { readComments } from "../store/discussion.js";
import { saveDraft } from "../store/drafts.js";
import { filterKey } from "../store/filters.js";
import {
  findStudy,
  type Gone,
  goneOf,
  listStudies,
  type Readable,
  readForToken,
  readStudyVersion,
  type StudyRow,
} from "../store/studies.js";
import { words } from "../text/words.js";
import type { Admitted } from "./authenticate.js";
import {
  idParameter,
  integerParameter,
  narrowingParameters,
  offsetParameter,
  parseQuery,
  searchParameter,
  versionParameter,
} from "./query.js";
import { readIdempotencyKey, readPackage } from "./read-package.js";

export interface Answer {
  status: 200 | 201;
  /** Parts are sent in order. */
  body: Buffer | readonly Buffer[];
  /** Whether every token with access gets the same answer. */
  shared?: boolean;
  /** Id of the study or draft, for the activity record. */
  resource: string | null;
}

/** Answers a request that passed authentication. @param segments the variable path segments, undecoded */
export type Respond = (
  service: Service,
  ctx: Context,
  admitted: Admitted,
  segments: readonly string[],
) => Promise<Answer>;

export const list: Respond = async (service, ctx, { counters }) => {
  const parameters = parseQuery(ctx.querystring, ["q", "limit", "offset", ...studyFilterNames]);
  const q = searchParameter(parameters);
  const limit = integerParameter(parameters, "limit", {
    minimum: 1,
    maximum: studyLimits.list_limit,
    otherwise: studyLimits.list_limit_default,
  });
  const offset = offsetParameter(parameters);
  const { filters, order } = narrowingParameters(parameters);
  const key = `${limit} ${offset} ${order} ${filterKey(filters)} ${words(q).join(" ")}`;
  const body = await service.lists.get(counters.generation, key, async () => {
    const { rows, total, exact } = await listStudies(service.store, q, limit, offset, counters, {
      filters,
      order,
    });
    const page: StudyPage = {
      items: rows.map(summaryOf),
      total,
      total_is_exact: exact,
      limit,
      offset,
      next_offset: nextOffset(offset, limit, total),
    };
    return Buffer.from(JSON.stringify(page));
  });
  return { status: 200, body, shared: true, resource: null };
};

export const create: Respond = async (service, ctx, { credential }) => {
  parseQuery(ctx.querystring, []);
  const key = readIdempotencyKey(ctx);
  const { bytes, study } = await readPackage(ctx);
  const saved = await saveDraft(service.store, credential, bytes, study.title, key);
  if (saved.outcome === "exhausted") {
    throw new ApiError(
      "draft_quota",
      `The account has used its ${studyLimits.drafts} drafts per 24 hours; wait ${saved.retryAfter} s.`,
      { headers: { "Retry-After": String(saved.retryAfter) } },
    );
  }
  if (saved.outcome === "key_reused") {
    throw new ApiError(
      "idempotency_key_reused",
      "This Idempotency-Key was already used with a different body.",
      {
        field: "Idempotency-Key",
      },
    );
  }
  if (saved.outcome === "deleted") {
    throw new ApiError(
      "draft_deleted",
      "The draft saved with this Idempotency-Key was deleted by its owner; use a new key to save it again.",
      { field: "Idempotency-Key" },
    );
  }
  const created: DraftCreated = {
    id: saved.id,
    review_url: draftUrl(service, saved.id),
    package_sha256: saved.sha256,
    expires_at: null,
  };
  return { status: 201, body: Buffer.from(JSON.stringify(created)), resource: saved.id };
};

export const study: Respond = async (service, ctx, { credential }, [segment = ""]) => {
  const id = idParameter(segment);
  parseQuery(ctx.querystring, []);
  const found = await readForToken(service.store, id, credential.tokenId);
  return envelope(service, found);
};

export const version: Respond = async (service, ctx, _admitted, [segment = "", versionText = ""]) => {
  const id = idParameter(segment);
  const number = versionParameter(versionText);
  parseQuery(ctx.querystring, []);
  return envelope(service, await readStudyVersion(service.store, id, number), `?version=${number}`);
};

function envelope(service: Service, found: Readable | undefined, query = ""): Answer {
  if (found === undefined) throw notFound();
  if (found.gone !== null) throw goneError(found.gone);
  const fields: Omit<StudyEnvelope, "package"> = {
    id: found.id,
    visibility: found.visibility,
    version: found.version,
    author: authorOf(found.author, found.handle),
    created_at: isoTime(found.created_at),
    published_at: found.published_at === null ? null : isoTime(found.published_at),
    url: found.visibility === "published" ? studyUrl(service, found.id) + query : draftUrl(service, found.id),
    package_sha256: found.sha256,
  };
  // Parsing and reserializing the package could change its bytes.
  const head = `${JSON.stringify(fields).slice(0, -1)},"package":`;
  return {
    status: 200,
    body: [Buffer.from(head), found.package, Buffer.from("}")],
    shared: found.visibility === "published",
    resource: found.id,
  };
}

function authorOf(name: string, handle: string | null): StudySummary["author"] {
  return handle === null ? { name } : { name, handle };
}

/** The error for a study that was published and then taken down. */
function goneError({ standing, at, reason }: Gone): ApiError {
  const who = standing === "withdrawn" ? "withdrawn by its author" : "removed by a moderator";
  const day = isoTime(at).slice(0, 10);
  return new ApiError(standing, `This was ${who} on ${day}.`, { field: "id", reason });
}

export const discussion: Respond = async (service, ctx, _admitted, [segment = ""]) => {
  const id = idParameter(segment);
  const offset = offsetParameter(parseQuery(ctx.querystring, ["offset"]));
  const study = await findStudy(service.store, id);
  if (study === undefined) throw notFound();
  const gone = await goneOf(service.store, study);
  if (gone !== null) throw goneError(gone);
  const limit = studyLimits.discussion_page;
  const comments = await readComments(service.store, id, offset, limit);
  const discussion: Discussion = {
    study_id: id,
    offset,
    limit,
    next_offset: nextOffset(offset, limit, study.comment_count),
    total: study.comment_count,
    upvotes: study.upvotes,
    comments: comments.map((comment) => ({
      id: comment.id,
      parent_id: comment.parent_id,
      author: authorOf(comment.author, comment.handle),
      created_at: isoTime(comment.created_at),
      ...(comment.edited_at === null ? {} : { edited_at: isoTime(comment.edited_at) }),
      body: comment.hidden === null ? comment.body : "",
      ...(comment.hidden === null ? {} : { state: comment.hidden }),
    })),
  };
  return { status: 200, body: Buffer.from(JSON.stringify(discussion)), shared: true, resource: id };
};

function summaryOf(row: StudyRow): StudySummary {
  return {
    id: row.id,
    title: row.title,
    question: row.question,
    author: authorOf(row.author, row.handle),
    model: JSON.parse(row.model),
    license: row.license,
    published_at: isoTime(row.published_at),
    version: row.version,
    entry_count: row.entry_count,
    upvotes: row.upvotes,
    comment_count: row.comment_count,
  };
}

// Requests cannot go beyond the largest offset.
function nextOffset(offset: number, limit: number, total: number): number | null {
  const next = offset + limit;
  return next < total && next <= studyLimits.offset ? next : null;
}

function notFound(): ApiError {
  return new ApiError("not_found", "No such study, or this token may not read it.", { field: "id" });
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

export function studyUrl(service: Service, id: string): string {
  return `${service.origin}/studies/${id}`;
}

export function draftUrl(service: Service, id: string): string {
  return `${service.origin}/drafts/${id}`;
}
