import { randomUUID } from "node:crypto";
import type { Context, Middleware } from "koa";
import { sha256Pattern } from "../../contracts/sha256.js";
import { createRouter } from "../../http/app.js";
import { isDisconnect } from "../../http/errors.js";
import { isSecure } from "../http/transport.js";
import { logFault, type Service } from "../service.js";
import { NotModerator } from "../store/audit.js";
import { AccountSuspended } from "../store/store.js";
import { copyScript, copyScriptPath } from "./copy-script.js";
import { html } from "./html.js";
import { page, stylePath } from "./layout.js";
import { account, postEndOthers, postEndSession, postSignOut } from "./pages/account.js";
import { leave, postExport, postLeave } from "./pages/account-data.js";
import {
  postDeleteComment,
  postEraseComment,
  postHideComment,
  postReinstate,
  postRemove,
  postReport,
  postReportComment,
  postShowComment,
  postWithdraw,
} from "./pages/actions.js";
import { agent, agents, postRevoke, postToken } from "./pages/agents.js";
import { postAppeal, postAppealStudy, postDismissAppeal } from "./pages/appeals.js";
import { authorAtom, feedAtom } from "./pages/atom.js";
import { author } from "./pages/author.js";
import { changes } from "./pages/changes.js";
import { cite } from "./pages/cite.js";
import { robots, securityText, sitemap, sitemapPart } from "./pages/crawlers.js";
import { comment, postComment, postEditComment } from "./pages/discussion.js";
import { docs } from "./pages/docs.js";
import { downloadDraft, drafts, postDelete, postPublish, review } from "./pages/drafts.js";
import { feed } from "./pages/feed.js";
import { model, models } from "./pages/models.js";
import {
  moderatedAccount,
  moderation,
  moderationLog,
  postDismiss,
  postSuspend,
  postUnsuspend,
} from "./pages/moderation.js";
import {
  notifications,
  postEndFeed,
  postFeed,
  postRead,
  postReadAll,
  privateFeed,
} from "./pages/notifications.js";
import { postSignIn, signIn, signInCallback } from "./pages/sign-in.js";
import { downloadStudy, postUpvote, study } from "./pages/study.js";
import {
  changeParameters,
  listParameters,
  type Parameters,
  pageParameters,
  searchParameters,
  studyParameters,
  versionParameters,
} from "./parameters.js";
import { answerPublic, isPublic } from "./public-pages.js";
import { icon, style } from "./style.js";
import { isUuid, NeedsSignIn, SiteError, seeOther, startVisit, type Visit } from "./visit.js";

/** Gets the path's parameters in order, ids in lower case. */
type Handler = (visit: Visit, ...parts: string[]) => void | Promise<void>;

/** Every route: method, path, handler, and the query parameters that a public page reads. */
export const routes: [method: "GET" | "POST", path: string, handler: Handler, parameters?: Parameters][] = [
  ["GET", "/", (visit) => feed(visit, "new"), listParameters],
  ["GET", "/top", (visit) => feed(visit, "top"), pageParameters],
  ["GET", "/reproduced", (visit) => feed(visit, "reproduced"), pageParameters],
  ["GET", "/models", (visit) => models(visit), pageParameters],
  ["GET", "/models/:hash", model, pageParameters],
  ["GET", "/studies/:id", study, studyParameters],
  ["GET", "/studies/:id/package.json", downloadStudy, versionParameters],
  ["GET", "/studies/:id/changes", changes, changeParameters],
  ["GET", "/studies/:id/v/:version", study, studyParameters],
  ["GET", "/studies/:id/v/:version/package.json", downloadStudy],
  ["GET", "/studies/:id/v/:version/cite.:ending", cite],
  ["GET", "/feed.atom", (visit) => feedAtom(visit), searchParameters],
  ["GET", "/authors/:handle", author, listParameters],
  ["GET", "/authors/:handle/feed.atom", authorAtom],
  ["GET", "/sitemap.xml", (visit) => sitemap(visit)],
  ["GET", "/sitemap-:part.xml", sitemapPart],
  ["GET", "/robots.txt", (visit) => robots(visit)],
  ["GET", "/.well-known/security.txt", (visit) => securityText(visit)],
  ["POST", "/studies/:id/comments", postComment],
  ["POST", "/studies/:id/upvote", postUpvote],
  ["POST", "/studies/:id/withdraw", postWithdraw],
  ["POST", "/studies/:id/remove", postRemove],
  ["POST", "/studies/:id/reinstate", postReinstate],
  ["POST", "/studies/:id/report", postReport],
  ["GET", "/comments/:id", comment],
  ["POST", "/comments/:id/edit", postEditComment],
  ["POST", "/comments/:id/delete", postDeleteComment],
  ["POST", "/comments/:id/report", postReportComment],
  ["POST", "/comments/:id/hide", postHideComment],
  ["POST", "/comments/:id/show", postShowComment],
  ["POST", "/comments/:id/erase", postEraseComment],
  ["POST", "/studies/:id/appeal", postAppealStudy],
  ["POST", "/appeal", (visit) => postAppeal(visit)],
  ["POST", "/appeals/:id/dismiss", postDismissAppeal],
  ["GET", "/moderation", moderation],
  ["GET", "/moderation/log", moderationLog],
  ["GET", "/moderation/account", moderatedAccount],
  ["POST", "/reports/:id/dismiss", postDismiss],
  ["POST", "/accounts/:id/suspend", postSuspend],
  ["POST", "/accounts/:id/reinstate", postUnsuspend],
  ["GET", "/sign-in", signIn],
  ["POST", "/sign-in/:provider", postSignIn],
  ["GET", "/sign-in/:provider/callback", signInCallback],
  ["POST", "/sign-out", postSignOut],
  ["GET", "/drafts", drafts],
  ["GET", "/drafts/:id", review],
  ["GET", "/drafts/:id/package.json", downloadDraft],
  ["POST", "/drafts/:id/publish", postPublish],
  ["POST", "/drafts/:id/delete", postDelete],
  ["GET", "/agents", (visit) => agents(visit)],
  ["POST", "/agents", postToken],
  ["GET", "/agents/:id", agent],
  ["POST", "/agents/:id/revoke", postRevoke],
  ["GET", "/notifications", notifications],
  ["POST", "/notifications/read", postReadAll],
  ["POST", "/notifications/:id/read", postRead],
  ["POST", "/notifications/feed", postFeed],
  ["POST", "/notifications/feed/end", postEndFeed],
  ["GET", "/notifications/feed/:secret.atom", privateFeed],
  ["GET", "/account", account],
  ["POST", "/account/export", postExport],
  ["GET", "/account/delete", leave],
  ["POST", "/account/delete", postLeave],
  ["POST", "/account/sessions/end-others", postEndOthers],
  ["POST", "/account/sessions/:id/end", postEndSession],
  ["GET", "/docs", docs],
];

/** Path parameters that are restricted beyond ending at a slash. */
const shapes: Record<string, { test(part: string): boolean }> = {
  id: { test: isUuid },
  version: /^\d+$/,
  ending: /^[a-z]+$/,
  handle: /^[\w-]+$/,
  hash: new RegExp(sha256Pattern),
  part: /^[1-9]\d{0,3}$/,
  provider: /^[a-z]+$/,
  secret: /^[\w-]+$/,
};

/** @param parts values of the path parameters, in order */
function fits(path: string, parts: readonly string[]): boolean {
  const names = [...path.matchAll(/:(\w+)/g)];
  return names.every(([, name], at) => shapes[name as string]?.test(parts[at] as string) ?? true);
}

/** No scripts (pages with code add theirs, see `page`), no other hosts, no framing; forms post to this site only. */
const policy =
  "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const immutable = "public, max-age=31536000, immutable";
const aDay = "public, max-age=86400";
const assets: Record<string, [type: string, cacheControl: string, body: string]> = {
  [stylePath]: ["text/css; charset=utf-8", immutable, style],
  [copyScriptPath]: ["text/javascript; charset=utf-8", immutable, copyScript],
  "/favicon.svg": ["image/svg+xml", aDay, icon],
  "/favicon.ico": ["image/svg+xml", aDay, icon],
};

/** The website. */
export function site(service: Service): Middleware {
  const router = createRouter();
  for (const [method, path, handler, parameters = {}] of routes) {
    router[method === "GET" ? "get" : "post"](path, async (ctx, next) => {
      if (!fits(path, ctx.captures)) return next();
      const visit: Visit = ctx.state.visit;
      const parts = ctx.captures.map((part) => (isUuid(part) ? part.toLowerCase() : part));
      const make = async () => handler(visit, ...parts);
      await (isPublic(visit) ? answerPublic(visit, parameters, make) : make());
    });
  }
  const answer = router.routes();
  return async (ctx) => {
    ctx.set("Content-Security-Policy", policy);
    ctx.set("X-Frame-Options", "DENY");
    ctx.set("X-Content-Type-Options", "nosniff");
    ctx.set("Referrer-Policy", "same-origin");
    ctx.set("Cross-Origin-Opener-Policy", "same-origin");
    ctx.set("Cross-Origin-Resource-Policy", "same-origin");
    ctx.set("Permissions-Policy", "camera=(), microphone=(), geolocation=()");
    ctx.set("Cache-Control", "no-store");
    if (!isSecure(service, ctx as Context)) {
      ctx.status = 403;
      ctx.body = "This service is available over HTTPS only.\n";
      return;
    }
    if (new URL(service.origin).hostname !== "localhost") {
      ctx.set("Strict-Transport-Security", "max-age=31536000");
    }
    const asset = assets[ctx.path];
    if (asset !== undefined) {
      const [type, cacheControl, body] = asset;
      ctx.set("Content-Type", type);
      ctx.set("Cache-Control", cacheControl);
      ctx.body = body;
      return;
    }
    const visit: Visit = { service, ctx: ctx as Context, session: null, csrf: "" };
    try {
      Object.assign(visit, await startVisit(service, ctx as Context));
      ctx.state.visit = visit;
      await answer(ctx, refuseUnrouted(ctx as Context));
    } catch (error) {
      fail(visit, error);
    }
  };
}

function refuseUnrouted(ctx: Context) {
  return async () => {
    const matched: { path: string; methods: string[]; captures(path: string): string[] }[] = ctx.matched;
    const fitting = matched.filter((layer) => fits(layer.path, layer.captures(ctx.path)));
    const allowed = fitting
      .flatMap(({ methods }) => methods.filter((method) => method !== "HEAD"))
      .join(", ");
    if (allowed === "") throw new SiteError(404, "Page not found.");
    ctx.set("Allow", allowed);
    throw new SiteError(405, `This page accepts only ${allowed}.`);
  };
}

const titles: Record<number, string> = {
  400: "Invalid request",
  403: "Not allowed",
  404: "Not found",
  405: "Method not allowed",
  409: "Conflict",
  410: "No longer available",
  429: "Too many requests",
};

function fail(visit: Visit, error: unknown): void {
  const { ctx, service } = visit;
  if (error instanceof NeedsSignIn) {
    seeOther(ctx, `/sign-in?return=${encodeURIComponent(ctx.path)}`);
    return;
  }
  if (error instanceof AccountSuspended) {
    fail(
      { ...visit, session: null },
      new SiteError(
        403,
        "This account is suspended or deleted, so nothing was changed. Sign in again to see why and to appeal.",
      ),
    );
    return;
  }
  if (error instanceof NotModerator) {
    fail(visit, new SiteError(404, "Page not found."));
    return;
  }
  if (error instanceof SiteError) {
    if (error.retryAfter !== null) ctx.set("Retry-After", String(error.retryAfter));
    const title = titles[error.status] ?? "Temporarily unavailable";
    page(
      visit,
      title,
      html`<h1>${title}</h1><p>${error.message}</p><p><a href="/">Back to studies</a></p>`,
      error,
    );
    return;
  }
  const requestId = randomUUID();
  if (!isDisconnect(error)) logFault(service, requestId, error);
  const body = html`<h1>Temporarily unavailable</h1><p>The service cannot handle the request right now. Please try again soon.</p>
<p class="hint">Request ${requestId}</p>`;
  page(visit, "Temporarily unavailable", body, { status: 503 });
}
