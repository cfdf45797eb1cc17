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
    /** Bumped by whoever needs the account for itself until its transaction ends. */
    turn: number;
  };
  approvals: { role: "agent" | "publisher"; identity: string; created_at: number };
  sessions: {
    id: string;
    hash: string;
    account_id: string;
    created_at: number;
    seen_at: number;
    expires_at: number;
    agent: string;
  };
  sign_ins: { hash: string; provider: string; secrets: string; created_at: number };
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
    entry_count: number;
    created_at: number;
    /** Of the current version. Strictly increasing over all publications, so it also orders and names them. */
    published_at: number;
    upvotes: number;
    comment_count: number;
  };
  versions: {
    study_id: string;
    version: number;
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
    /** Six base-36 digits for each ancestor and itself: sorted, it is the thread order. */
    thread: string;
  };
  votes: { study_id: string; version: number; account_id: string; created_at: number };
  counters: { name: string; value: number };
}
