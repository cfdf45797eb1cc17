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
  /** What forms of this session must send back; empty without a session. */
  csrf: string;
}

/** A page that says no. */
export class SiteError extends Error {
  override name = "SiteError";
  readonly status: number;
  /** Seconds to wait, where waiting helps. */
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
 * Cookies go to this origin alone, over HTTPS, never to scripts. Lax, because providers send people back here. Written
 * here, because Koa's own have no Max-Age, and refuse to be secure behind a proxy that ends TLS.
 */
export function setCookie(ctx: Context, name: string, value: string, maxAge: number): void {
  ctx.append("Set-Cookie", `${name}=${value}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=${maxAge}`);
}

/** A comment's characters take up to twelve bytes each in a form. */
const formBytes = studyLimits.comment * 12 + 4000;

/** Counts what a visitor does. @throws SiteError where it has been done too often */
export async function countVisit(visit: Visit, action: LimitedAction): Promise<void> {
  const { service, ctx, session } = visit;
  const from = { accountId: session?.account.id ?? null, address: clientAddress(service, ctx) };
  const wait = await countAction(service.store, action, from);
  if (wait === 0) return;
  throw new SiteError(429, `${tooOften[action]}; please try again in ${duration(wait)}.`, wait);
}

const tooOften: Record<LimitedAction, string> = {
  form: "Too many forms came from here in a short time",
  comment: "That were many comments in a short time",
  vote: "That were many votes in a short time",
  report: "That were many reports in a short time",
  appeal: "That were many messages to the moderators in a short time",
  export: "Your data was exported several times in a short time",
  "sign-in": "Too many sign-ins were begun from here in a short time",
};

function duration(seconds: number): string {
  return seconds < 120 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`;
}

/**
 * Reads a posted form. Refuses forms that another site sent: by the browser's own word, and by the session's
 * token.
 * @returns the form, and the session that sent it
 */
export async function readForm(visit: Visit): Promise<Session & { form: URLSearchParams }> {
  const form = await readAnyForm(visit);
  if (visit.session === null) throw new SiteError(403, "Your session has ended; sign in and try again.");
  if (!sameText(form.get("csrf") ?? "", visit.csrf)) {
    throw new SiteError(403, "This form is too old, or was not made for you; load its page again.");
  }
  return { ...visit.session, form };
}

/** The same of moderators; everybody else has no such form. */
export async function readModeratorForm(
  visit: Visit,
): Promise<{ form: URLSearchParams; actor: { accountId: string } }> {
  const { form } = await readForm(visit);
  return { form, actor: { accountId: requireModerator(visit).account.id } };
}

/** A form that needs no session: only the browser says that it is of this site. */
export async function readAnyForm(visit: Visit): Promise<URLSearchParams> {
  const { ctx, service } = visit;
  const { origin, "sec-fetch-site": fetchSite } = ctx.req.headers;
  if ((origin !== undefined && origin !== service.origin) || (fetchSite ?? "same-origin") !== "same-origin") {
    throw new SiteError(403, "This form was sent by another site, so nothing was done.");
  }
  if (!/^application\/x-www-form-urlencoded\b/i.test(ctx.get("Content-Type"))) {
    throw new SiteError(400, "This is not a form of this site.");
  }
  await countVisit(visit, "form");
  const bytes = await readBytes(ctx, formBytes).catch((error) => {
    if (error instanceof HttpError)
      throw new SiteError(400, "The form is too large, or did not arrive whole.");
    throw error;
  });
  return new URLSearchParams(bytes.toString("utf8"));
}

const uuid = new RegExp(uuidPattern);

/** The place in a log before which the page begins, from its address. */
export function beforeOf({ ctx }: Visit): Place | undefined {
  const text = new URLSearchParams(ctx.querystring).get("before") ?? "";
  const [, at, id] = /^(\d{1,15})-([0-9a-f-]{36})$/.exec(text) ?? [];
  return id === undefined ? undefined : { at: Number(at), id };
}

export function isUuid(text: string): boolean {
  return uuid.test(text);
}

/** A path's id in lower case; not found where it is none. */
export function idOf(text: string | undefined): string {
  if (text === undefined || !isUuid(text)) throw new SiteError(404, "There is no such page.");
  return text.toLowerCase();
}

/** The session of a page that needs one; without it the visitor is sent to sign in, and then back. */
export class NeedsSignIn extends Error {
  override name = "NeedsSignIn";
}

/** The session of a page for moderators. To everybody else there is no such page. */
export function requireModerator(visit: Visit): Session {
  const session = requireSession(visit);
  if (!session.isModerator) throw new SiteError(404, "There is no such page.");
  return session;
}

/** A reason that a form gives: 1 to 1000 characters that can be seen. */
export function reasonOf(form: URLSearchParams): string {
  const reason = displayable(form.get("reason") ?? "")
    .replace(/\r\n/g, "\n")
    .trim();
  const length = [...reason].length;
  if (isBlank(reason) || length > studyLimits.reason) {
    throw new SiteError(400, `A reason has 1 to ${studyLimits.reason} characters; this has ${length}.`);
  }
  return reason;
}

export function requireSession(visit: Visit): Session {
  if (visit.session === null) throw new NeedsSignIn();
  return visit.session;
}

/** A path of this site to go to after signing in; anything else becomes the front page. */
export function safeReturn(service: Pick<Service, "origin">, path: string | null): string {
  if (path === null || !/^\/(?![/\\])[\x21-\x7e]*$/.test(path)) return "/";
  const url = new URL(path, service.origin);
  // Dots are resolved by now: `/..//evil.example` has become a path that browsers read as another host.
  if (url.origin !== service.origin || url.pathname.startsWith("//")) return "/";
  return url.pathname + url.search;
}

export function seeOther(ctx: Context, path: string): void {
  ctx.status = 303;
  ctx.set("Location", path);
  ctx.body = "";
}
