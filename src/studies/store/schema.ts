import type { Generated } from "kysely";
import type { Outcome } from "../../contracts/studies/index.js";

/** Withdrawn by its author, removed by a moderator or operator. */
export type Standing = "published" | "withdrawn" | "removed";

/** Tables. Times are Unix milliseconds; ids are lower-case UUIDs; `recent` columns are sliding windows (window.ts). */
export interface Database {
  accounts: {
    id: string;
    /** Identity provider: an OpenID issuer, or "github". */
    issuer: string;
    subject: string;
    name: string;
    /** Verified address, lowercase; null if the provider verified none. */
    email: string | null;
    /** GitHub login, lowercase. */
    login: string | null;
    created_at: number;
    recent_drafts: string;
    /** Unique and permanent. Null after deletion, or while a restore runs. */
    handle: string | null;
    /** When it was suspended; null if it is not. */
    suspended_at: number | null;
    suspension: string | null;
    /** Incremented to lock the account until the transaction ends. */
    turn: number;
    /** SHA-256 of the secret in its private feed's address; null without a feed. */
    feed_hash: string | null;
    /** When its owner deleted it; its publications stay, anonymized. */
    deleted_at: number | null;
  };
  approvals: {
    role: "agent" | "publisher" | "moderator";
    /** As given by the operator. */
    identity: string;
    created_at: number;
    /**
     * The approved account. A name that can change hands (address, login) is bound to the first account that has it; null
     * until then.
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
  /** Completed sign-ins, so that none is replayed. */
  sign_ins: { hash: string; provider: string; secrets: string; created_at: number };
  /** Keys of this database in base64url; excluded from backups. */
  secrets: { name: string; value: string };
  /** Sliding windows of actions on the website, by action and account or address. */
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
    /** The model's name, for filtering. */
    model_name: Generated<string>;
    /** Operations whose results it reports, each surrounded by spaces. */
    methods: Generated<string>;
    entry_count: number;
    created_at: number;
    /** Of the current version. Strictly increasing across publications, so it also orders and identifies them. */
    published_at: number;
    upvotes: number;
    comment_count: number;
    /** 1 if it appears in lists and search: the study and at least one version are published. */
    listed: Generated<number>;
    standing: Generated<Standing>;
    standing_at: number | null;
    reason: string | null;
  };
  versions: {
    study_id: string;
    version: number;
    /** The draft that became this version; null if published by a release that did not store it. */
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
    /** When its author last edited it; null if never. */
    edited_at: number | null;
    /** Deleted by its author (the body is gone), hidden by a moderator, or null. */
    hidden: "deleted" | "hidden" | null;
    reason: string | null;
    /** Six base-36 digits for each ancestor and itself; sorting by it gives the thread order. */
    thread: string;
  };
  votes: { study_id: string; version: number; account_id: string; created_at: number };
  /** Claimed reproductions. Derived from the packages, so excluded from backups. */
  reproductions: {
    study_id: string;
    version: number;
    original_id: string;
    original_version: number;
    outcome: Outcome;
    differed: string | null;
  };
  /**
   * Measured models of the current versions of listed studies. Derived from the packages, so excluded from backups. A
   * publication time identifies a version.
   */
  measured_models: {
    published_at: number;
    account_id: string;
    /** SHA-256 of the model's file, its name, its size, and its bits per weight. */
    model: string;
    file: string;
    bytes: number;
    bits: number;
    /** SHA-256 of the texts. */
    texts: string;
    /** SHA-256 of the complete result. */
    result: string;
  };
  /** Their measured forms. */
  measured_forms: {
    published_at: number;
    /** Place in the study's list of forms. */
    place: number;
    account_id: string;
    model: string;
    /** SHA-256 of the form's file, and its size. */
    form: string;
    bytes: number;
    /** JSON. */
    figures: string;
  };
  reports: {
    id: string;
    study_id: string;
    /** The reported comment; null for the study itself. */
    comment_id: string | null;
    account_id: string;
    created_at: number;
    reason: string;
    closed_at: number | null;
    /** Null while it is open. */
    outcome: "acted" | "dismissed" | null;
  };
  appeals: {
    id: string;
    account_id: string;
    /** The removed study; null for an appeal against the account's suspension. */
    study_id: string | null;
    created_at: number;
    body: string;
    closed_at: Generated<number | null>;
    /** Null while it is open. */
    outcome: Generated<"acted" | "dismissed" | null>;
  };
  /** Actions of people and operators. Never research text, only the reasons they gave. */
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
  /** Ids only; the objects may disappear at any time. */
  notifications: {
    id: string;
    /** The recipient. */
    account_id: string;
    at: number;
    /**
     * `reply` to a comment, `comment` on a study, `reproduction` of a study, `draft` to review; by a moderator: study
     * `removed` or `reinstated`, comment `hidden`.
     */
    kind: "reply" | "comment" | "reproduction" | "draft" | "removed" | "reinstated" | "hidden";
    study_id: string | null;
    comment_id: string | null;
    /** The reproducing study. */
    by_study_id: string | null;
    draft_id: string | null;
    actor_id: string | null;
    read_at: number | null;
  };
  /** SHA-256 of deleted accounts' handles, which are never reused, because mentions of them remain. */
  retired_handles: { hash: string; retired_at: number };
  counters: { name: string; value: number };
}
