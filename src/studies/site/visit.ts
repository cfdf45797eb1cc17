import { createHmac } from "node:crypto";
import type { Context } from "koa";
import { studyLimits, uuidPattern } from "../../contracts/studies/index.js";
import { HttpError, readBytes } from "../../http/index.js";
import { clientAddress } from "../http/transport.js";
import type { Service } from "../service.js";
import { countAction, type LimitedAction } from "../store/limits.js";
import type { Place } from "../store/rows.js";
import { findSession, type Session } from "../store/sessions.js";
import { isBlank } from "../text/blank.js";
import { displayable } from "../text/display.js";
import { sameText } from "../text/same.js";

export const sessionCookie = "__Host-tapline-session";
export const signInCookie = "__Host-tapline-signin";

/** One request to the website. */
export interface Visit {
  service: Service;
  ctx: Context;
  session: Session | null;
  /** CSRF token of this session's forms; empty without a session. */
  csrf: string;
}

/** An error page with a sentence. */
export class SiteError extends Error {
  override name = "SiteError";
  readonly status: number;
  /** Seconds to wait before retrying; null if waiting does not help. */
  readonly retryAfter: number | null;

  constructor(status: number, sentence: string, retryAfter: number | null = null) {
    super(sentence);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export async function startVisit(service: Service, ctx: Context): Promise<Visit> {
  const secret = ctx.cookies.get(sessionCookie);
  const session = secret === undefined ? null : await findSession(service.store, secret);
  const csrf = session === null ? "" : csrfOf(secret as string);
  return { service, ctx, session, csrf };
}

function csrfOf(sessionSecret: string): string {
  return createHmac("sha256", sessionSecret).update("form").digest("base64url");
}

/**
 * Sets a cookie for this origin only, over HTTPS, hidden from scripts. Lax, because providers redirect back here. Not
 * Koa's own method, which has no Max-Age and refuses Secure behind a TLS-terminating proxy.
 */
export function setCookie(ctx: Context, name: string, value: string, maxAge: number): void {
  ctx.append("Set-Cookie", `${name}=${value}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=${maxAge}`);
}

/** A character takes up to twelve bytes in a form. */
const formBytes = studyLimits.comment * 12 + 4000;

/** Counts an action of a visitor. @throws SiteError if the rate limit is exceeded */
export async function countVisit(visit: Visit, action: LimitedAction): Promise<void> {
  const { service, ctx, session } = visit;
  const from = { accountId: session?.account.id ?? null, address: clientAddress(service, ctx) };
  const wait = await countAction(service.store, action, from);
  if (wait === 0) return;
  throw new SiteError(429, `${tooOften[action]}. Please try again in ${duration(wait)}.`, wait);
}

const tooOften: Record<LimitedAction, string> = {
  form: "Too many forms from your address in a short time",
  comment: "Too many comments in a short time",
  vote: "Too many votes in a short time",
  report: "Too many reports in a short time",
  appeal: "Too many messages to the moderators in a short time",
  export: "Too many data exports in a short time",
  "sign-in": "Too many sign-in attempts from your address in a short time",
};

function duration(seconds: number): string {
  return seconds < 120 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`;
}

/**
 * Reads a posted form. Rejects cross-site forms, by the browser's headers and the session's CSRF token.
 * @returns the form and its session
 */
export async function readForm(visit: Visit): Promise<Session & { form: URLSearchParams }> {
  const form = await readAnyForm(visit);
  if (visit.session === null) throw new SiteError(403, "Your session has ended. Sign in and try again.");
  if (!sameText(form.get("csrf") ?? "", visit.csrf)) {
    throw new SiteError(403, "This form has expired or belongs to another session. Reload its page.");
  }
  return { ...visit.session, form };
}

/** The same for moderators only. */
export async function readModeratorForm(
  visit: Visit,
): Promise<{ form: URLSearchParams; actor: { accountId: string } }> {
  const { form } = await readForm(visit);
  return { form, actor: { accountId: requireModerator(visit).account.id } };
}

/** Reads a form that needs no session; only the browser's headers prove that it is from this site. */
export async function readAnyForm(visit: Visit): Promise<URLSearchParams> {
  const { ctx, service } = visit;
  const { origin, "sec-fetch-site": fetchSite } = ctx.req.headers;
  if ((origin !== undefined && origin !== service.origin) || (fetchSite ?? "same-origin") !== "same-origin") {
    throw new SiteError(403, "This form was sent by another site, so it was ignored.");
  }
  if (!/^application\/x-www-form-urlencoded\b/i.test(ctx.get("Content-Type"))) {
    throw new SiteError(400, "This is not a form from this site.");
  }
  await countVisit(visit, "form");
  const bytes = await readBytes(ctx, formBytes).catch((error) => {
    if (error instanceof HttpError) throw new SiteError(400, "The form is too large or was truncated.");
    throw error;
  });
  return new URLSearchParams(bytes.toString("utf8"));
}

const uuid = new RegExp(uuidPattern);

/** The log position in `?before=`. */
export function beforeOf({ ctx }: Visit): Place | undefined {
  const text = new URLSearchParams(ctx.querystring).get("before") ?? "";
  const [, at, id] = /^(\d{1,15})-([0-9a-f-]{36})$/.exec(text) ?? [];
  return id === undefined ? undefined : { at: Number(at), id };
}

export function isUuid(text: string): boolean {
  return uuid.test(text);
}

/** An id in lower case. @throws SiteError 404 if it is not a UUID */
export function idOf(text: string): string {
  if (!isUuid(text)) throw new SiteError(404, "Page not found.");
  return text.toLowerCase();
}

/** Thrown by pages that need a session; the visitor is sent to sign in, and then back. */
export class NeedsSignIn extends Error {
  override name = "NeedsSignIn";
}

/** The moderator's session. @throws SiteError 404 for everyone else */
export function requireModerator(visit: Visit): Session {
  const session = requireSession(visit);
  if (!session.isModerator) throw new SiteError(404, "Page not found.");
  return session;
}

/** The reason from a form: 1 to 1000 characters, not blank. */
export function reasonOf(form: URLSearchParams): string {
  const reason = displayable(form.get("reason") ?? "")
    .replace(/\r\n/g, "\n")
    .trim();
  const length = [...reason].length;
  if (isBlank(reason) || length > studyLimits.reason) {
    throw new SiteError(400, `A reason must have 1 to ${studyLimits.reason} characters, got ${length}.`);
  }
  return reason;
}

export function requireSession(visit: Visit): Session {
  if (visit.session === null) throw new NeedsSignIn();
  return visit.session;
}

/** A path on this site to return to after signing in; anything else becomes the front page. */
export function safeReturn(service: Pick<Service, "origin">, path: string | null): string {
  if (path === null || !/^\/(?![/\\])[\x21-\x7e]*$/.test(path)) return "/";
  const url = new URL(path, service.origin);
  // Resolving dots can turn `/..//evil.example` into a path that browsers treat as another host.
  if (url.origin !== service.origin || url.pathname.startsWith("//")) return "/";
  return url.pathname + url.search;
}

export function seeOther(ctx: Context, path: string): void {
  ctx.status = 303;
  ctx.set("Location", path);
  ctx.body = "";
}
