import type { Generated } from "kysely";
import type { Outcome } from "../../contracts/studies/index.js";

/** Withdrawn by its author, removed by a moderator or operator. */
export type Standing = "published" | "withdrawn" | "removed";

/** Tables. Times are Unix milliseconds; ids are lower-case UUIDs; `recent` columns are sliding windows (window.ts). */
export interface Database {
  accounts: {
    id: string;
    /** Who vouches for the account: an OpenID issuer, or "github". */
    issuer: string;
    subject: string;
    name: string;
    /** Verified address, lower case; null where the provider vouches for none. */
    email: string | null;
    /** Login at GitHub, lower case. */
    login: string | null;
    created_at: number;
    recent_drafts: string;
    /** Names the account beside its name: unique, and never another. Null once it is deleted, or while a restore runs. */
    handle: string | null;
    /** When it was suspended; null while it may act. */
    suspended_at: number | null;
    suspension: string | null;
    /** Bumped by whoever needs the account for itself until its transaction ends. */
    turn: number;
    /** SHA-256 of the secret in its private feed's address; null where it has none. */
    feed_hash: string | null;
    /** When its owner deleted it: what it published is left, under no name. */
    deleted_at: number | null;
  };
  approvals: {
    role: "agent" | "publisher" | "moderator";
    /** As the operator named somebody. */
    identity: string;
    created_at: number;
    /**
     * Whose it is. A name that can change hands (an address, a login) counts for the first account that shows it and
     * for no other; null until then.
     */
    account_id: string | null;
  };
  sessions: {
    id: string;
    hash: string;
    account_id: string;
    created_at: number;
    seen_at: number;
    expires_at: number;
    agent: string;
  };
  /** Sign-ins that came back, so that none does twice. */
  sign_ins: { hash: string; provider: string; secrets: string; created_at: number };
  /** Keys of this database that no backup holds, in base64url. */
  secrets: { name: string; value: string };
  /** Sliding windows of what people do on the website, by action and account or address. */
  limits: { key: string; recent: string; touched_at: number };
  tokens: {
    id: string;
    account_id: string;
    name: string;
    hash: string;
    prefix: string;
    last4: string;
    scopes: string;
    created_at: number;
    expires_at: number;
    revoked_at: number | null;
    last_used_at: number | null;
    recent: string;
  };
  activity: { token_id: string; at: number; action: string; status: number; resource: string | null };
  drafts: {
    id: string;
    account_id: string;
    token_id: string;
    title: string;
    created_at: number;
    sha256: string;
    package: Buffer;
  };
  replays: { token_id: string; key: string; body_sha256: string; answer: string; created_at: number };
  studies: {
    id: string;
    account_id: string;
    author: string;
    version: number;
    title: string;
    question: string;
    model: string;
    license: string;
    /** The model's name alone, to look for. */
    model_name: Generated<string>;
    /** Operations whose results it tells, each between spaces. */
    methods: Generated<string>;
    entry_count: number;
    created_at: number;
    /** Of the current version. Strictly increasing over all publications, so it also orders and names them. */
    published_at: number;
    upvotes: number;
    comment_count: number;
    /** 1 while it stands in lists and in the search: it is published, and so is a version of it. */
    listed: Generated<number>;
    standing: Generated<Standing>;
    standing_at: number | null;
    reason: string | null;
  };
  versions: {
    study_id: string;
    version: number;
    /** The draft that became this version; null where a release that did not keep it published it. */
    draft_id: string | null;
    standing: Generated<Standing>;
    standing_at: number | null;
    reason: string | null;
    created_at: number;
    published_at: number;
    sha256: string;
    package: Buffer;
  };
  comments: {
    id: string;
    study_id: string;
    parent_id: string | null;
    account_id: string;
    author: string;
    created_at: number;
    body: string;
    /** When its author last changed it; null where never. */
    edited_at: number | null;
    /** Deleted by its author (the body is gone), hidden by a moderator, or null. */
    hidden: "deleted" | "hidden" | null;
    reason: string | null;
    /** Six base-36 digits for each ancestor and itself: sorted, it is the thread order. */
    thread: string;
  };
  votes: { study_id: string; version: number; account_id: string; created_at: number };
  /** Which version a version says that it repeats. Kept from the packages, so no backup holds it. */
  reproductions: {
    study_id: string;
    version: number;
    original_id: string;
    original_version: number;
    outcome: Outcome;
    differed: string | null;
  };
  reports: {
    id: string;
    study_id: string;
    /** The comment that is reported; null for the study itself. */
    comment_id: string | null;
    account_id: string;
    created_at: number;
    reason: string;
    closed_at: number | null;
    /** Whether something was done about it; null while it is open. */
    outcome: "acted" | "dismissed" | null;
  };
  appeals: {
    id: string;
    account_id: string;
    /** The removed study; null where it is against the account's suspension. */
    study_id: string | null;
    created_at: number;
    body: string;
    closed_at: Generated<number | null>;
    /** Whether what it is against was taken back; null while it is open. */
    outcome: Generated<"acted" | "dismissed" | null>;
  };
  /** What people and operators did. Never research text: reasons are those that they gave. */
  audit: {
    id: string;
    at: number;
    /** Account id, or "operator" for the command line. */
    actor: string;
    action: string;
    /** Id of the study, draft, comment, token, account or report. */
    target: string;
    detail: string | null;
  };
  /** What accounts are told of. Ids alone; what they stand for may go at any time. */
  notifications: {
    id: string;
    /** Who is told. */
    account_id: string;
    at: number;
    /**
     * `reply` to a comment, `comment` on a study, `reproduction` of a study, `draft` that waits for its review; a
     * moderator's doing: a study was `removed` or `reinstated`, a comment `hidden`.
     */
    kind: "reply" | "comment" | "reproduction" | "draft" | "removed" | "reinstated" | "hidden";
    study_id: string | null;
    comment_id: string | null;
    /** The study that reproduces. */
    by_study_id: string | null;
    draft_id: string | null;
    actor_id: string | null;
    read_at: number | null;
  };
  /** Handles of deleted accounts, as SHA-256: nobody gets one again, for what was said to it and of it stays. */
  retired_handles: { hash: string; retired_at: number };
  counters: { name: string; value: number };
}
