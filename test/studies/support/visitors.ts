/** Who visits the website, as its pages see them. */
import type { Visit } from "../../../src/studies/site/visit.js";
import type { StudyRow } from "../../../src/studies/store/studies.js";

export const uuid = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;

export const origin = "https://s.example";
export type Who = { id: string; moderator?: boolean } | null;
/** Nobody has no session. */
export const sessionOf = (who: Who) =>
  who && { id: "x", account: { id: who.id }, isModerator: who.moderator === true, unread: 0 };
export const visitOf = (who: Who, querystring = "") =>
  ({ service: { origin }, ctx: { querystring }, session: sessionOf(who), csrf: "token" }) as unknown as Visit;
/** A study that is published. */
export const rowOf = (change: object = {}) =>
  ({
    id: "s",
    account_id: "author",
    listed: 1,
    standing: "published",
    comment_count: 0,
    ...change,
  }) as StudyRow;
export const [author, reader, moderator] = [
  { id: "author" },
  { id: "reader" },
  { id: "mod", moderator: true },
];
