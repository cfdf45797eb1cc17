/** Every limit of the studies service, once. A bare name is a maximum, `_min` a minimum. */
export const studyLimits = {
  package_bytes: 1_000_000,
  json_depth: 32,
  title: 160,
  question: 4000,
  method: 8000,
  limitations: 8000,
  long_text: 100_000,
  omissions: 100,
  omission: 1000,
  entries: 200,
  entry_title: 300,
  model_name: 300,
  model_revision: 200,
  model_runtime: 200,
  context_messages: 200,
  finish_reason: 100,
  temperature: 10,
  seed: Number.MAX_SAFE_INTEGER,
  max_tokens: 1_000_000,
  q: 160,
  list_limit: 50,
  list_limit_default: 20,
  offset: 10_000,
  discussion_page: 50,
  summary_question: 300,
  requests: 60,
  request_window_ms: 60_000,
  drafts: 10,
  draft_window_ms: 86_400_000,
  active_tokens: 10,
  token_days: 30,
  token_name: 100,
  idempotency_key: 200,
  idempotency_ms: 86_400_000,
  comment: 10_000,
  comment_depth: 32,
  comment_edit_ms: 900_000,
  reason: 1000,
  activity_days: 30,
  audit_days: 365,
  notification_days: 180,
  session_days: 14,
} as const;

const minute = 60_000;

/** Rate limits of the website: actions per window for an account and for an address. */
export const siteLimits = {
  form: { account: 300, address: 900, window_ms: 10 * minute },
  comment: { account: 30, address: 90, window_ms: 60 * minute },
  vote: { account: 120, address: 360, window_ms: 60 * minute },
  report: { account: 20, address: 60, window_ms: 1440 * minute },
  appeal: { account: 5, address: 20, window_ms: 1440 * minute },
  export: { account: 5, address: 30, window_ms: 60 * minute },
  /** Starts count only for the address, because the account is not known yet. */
  "sign-in": { account: 30, address: 60, window_ms: 10 * minute },
} as const;

/** Default port of the service. */
export const studiesPort = 8990;
