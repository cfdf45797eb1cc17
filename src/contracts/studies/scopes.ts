/** Scopes of a token. `public:read` is the default choice. */
export const scopes = ["public:read", "drafts:write"] as const;
export type Scope = (typeof scopes)[number];
