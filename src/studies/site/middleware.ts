import { randomUUID } from "node:crypto";
import type { Context, Middleware } from "koa";
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
import { NeedsSignIn, SiteError, seeOther, startVisit, type Visit } from "./visit.js";

type Handler = (visit: Visit, ...parts: (string | undefined)[]) => void | Promise<void>;

/** Every page: method, path with the parts that vary, what answers; what a public page reads from its query. */
export const routes: [method: "GET" | "POST", path: RegExp, handler: Handler, parameters?: Parameters][] = [
  ["GET", /^\/$/, (visit) => feed(visit, "new"), listParameters],
  ["GET", /^\/top$/, (visit) => feed(visit, "top"), pageParameters],
  ["GET", /^\/reproduced$/, (visit) => feed(visit, "reproduced"), pageParameters],
  ["GET", /^\/studies\/([^/]+)$/, study, studyParameters],
  ["GET", /^\/studies\/([^/]+)\/package\.json$/, downloadStudy, versionParameters],
  ["GET", /^\/studies\/([^/]+)\/changes$/, changes, changeParameters],
  ["GET", /^\/studies\/([^/]+)\/v\/(\d+)$/, study, studyParameters],
  ["GET", /^\/studies\/([^/]+)\/v\/(\d+)\/package\.json$/, downloadStudy],
  ["GET", /^\/studies\/([^/]+)\/v\/(\d+)\/cite\.([a-z]+)$/, cite],
  ["GET", /^\/feed\.atom$/, (visit) => feedAtom(visit), searchParameters],
  ["GET", /^\/authors\/([\w-]+)$/, author, listParameters],
  ["GET", /^\/authors\/([\w-]+)\/feed\.atom$/, authorAtom],
  ["GET", /^\/sitemap\.xml$/, (visit) => sitemap(visit)],
  ["GET", /^\/sitemap-([1-9]\d{0,3})\.xml$/, sitemapPart],
  ["GET", /^\/robots\.txt$/, (visit) => robots(visit)],
  ["GET", /^\/\.well-known\/security\.txt$/, (visit) => securityText(visit)],
  ["POST", /^\/studies\/([^/]+)\/comments$/, postComment],
  ["POST", /^\/studies\/([^/]+)\/upvote$/, postUpvote],
  ["POST", /^\/studies\/([^/]+)\/withdraw$/, postWithdraw],
  ["POST", /^\/studies\/([^/]+)\/remove$/, postRemove],
  ["POST", /^\/studies\/([^/]+)\/reinstate$/, postReinstate],
  ["POST", /^\/studies\/([^/]+)\/report$/, postReport],
  ["GET", /^\/comments\/([^/]+)$/, comment],
  ["POST", /^\/comments\/([^/]+)\/edit$/, postEditComment],
  ["POST", /^\/comments\/([^/]+)\/delete$/, postDeleteComment],
  ["POST", /^\/comments\/([^/]+)\/report$/, postReportComment],
  ["POST", /^\/comments\/([^/]+)\/hide$/, postHideComment],
  ["POST", /^\/comments\/([^/]+)\/show$/, postShowComment],
  ["POST", /^\/comments\/([^/]+)\/erase$/, postEraseComment],
  ["POST", /^\/studies\/([^/]+)\/appeal$/, postAppealStudy],
  ["POST", /^\/appeal$/, (visit) => postAppeal(visit)],
  ["POST", /^\/appeals\/([^/]+)\/dismiss$/, postDismissAppeal],
  ["GET", /^\/moderation$/, moderation],
  ["GET", /^\/moderation\/log$/, moderationLog],
  ["GET", /^\/moderation\/account$/, moderatedAccount],
  ["POST", /^\/reports\/([^/]+)\/dismiss$/, postDismiss],
  ["POST", /^\/accounts\/([^/]+)\/suspend$/, postSuspend],
  ["POST", /^\/accounts\/([^/]+)\/reinstate$/, postUnsuspend],
  ["GET", /^\/sign-in$/, signIn],
  ["POST", /^\/sign-in\/([a-z]+)$/, postSignIn],
  ["GET", /^\/sign-in\/([a-z]+)\/callback$/, signInCallback],
  ["POST", /^\/sign-out$/, postSignOut],
  ["GET", /^\/drafts$/, drafts],
  ["GET", /^\/drafts\/([^/]+)$/, review],
  ["GET", /^\/drafts\/([^/]+)\/package\.json$/, downloadDraft],
  ["POST", /^\/drafts\/([^/]+)\/publish$/, postPublish],
  ["POST", /^\/drafts\/([^/]+)\/delete$/, postDelete],
  ["GET", /^\/agents$/, (visit) => agents(visit)],
  ["POST", /^\/agents$/, postToken],
  ["GET", /^\/agents\/([^/]+)$/, agent],
  ["POST", /^\/agents\/([^/]+)\/revoke$/, postRevoke],
  ["GET", /^\/notifications$/, notifications],
  ["POST", /^\/notifications\/read$/, postReadAll],
  ["POST", /^\/notifications\/([^/]+)\/read$/, postRead],
  ["POST", /^\/notifications\/feed$/, postFeed],
  ["POST", /^\/notifications\/feed\/end$/, postEndFeed],
  ["GET", /^\/notifications\/feed\/([\w-]+)\.atom$/, privateFeed],
  ["GET", /^\/account$/, account],
  ["POST", /^\/account\/export$/, postExport],
  ["GET", /^\/account\/delete$/, leave],
  ["POST", /^\/account\/delete$/, postLeave],
  ["POST", /^\/account\/sessions\/end-others$/, postEndOthers],
  ["POST", /^\/account\/sessions\/([^/]+)\/end$/, postEndSession],
  ["GET", /^\/docs$/, docs],
];

/** No script (pages with code name theirs, see `page`), no other host, no framing; forms go home only. */
const policy =
  "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/** The website. */
export function site(service: Service): Middleware {
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
      ctx.body = "This service is reached over HTTPS only.\n";
      return;
    }
    if (new URL(service.origin).hostname !== "localhost") {
      ctx.set("Strict-Transport-Security", "max-age=31536000");
    }
    if (ctx.path === stylePath) {
      ctx.set("Content-Type", "text/css; charset=utf-8");
      ctx.set("Cache-Control", "public, max-age=31536000, immutable");
      ctx.body = style;
      return;
    }
    if (ctx.path === copyScriptPath) {
      ctx.set("Content-Type", "text/javascript; charset=utf-8");
      ctx.set("Cache-Control", "public, max-age=31536000, immutable");
      ctx.body = copyScript;
      return;
    }
    if (ctx.path === "/favicon.svg" || ctx.path === "/favicon.ico") {
      ctx.set("Content-Type", "image/svg+xml");
      ctx.set("Cache-Control", "public, max-age=86400");
      ctx.body = icon;
      return;
    }
    const visit: Visit = { service, ctx: ctx as Context, session: null, csrf: "" };
    try {
      Object.assign(visit, await startVisit(service, ctx as Context));
      await answer(visit);
    } catch (error) {
      fail(visit, error);
    }
  };
}

async function answer(visit: Visit): Promise<void> {
  const { ctx } = visit;
  const method = ctx.method === "HEAD" ? "GET" : ctx.method;
  const allowed: string[] = [];
  for (const [accepted, path, handler, parameters = {}] of routes) {
    const match = path.exec(ctx.path);
    if (match === null) continue;
    if (accepted === method) {
      const make = async () => handler(visit, ...match.slice(1));
      await (isPublic(visit) ? answerPublic(visit, parameters, make) : make());
      return;
    }
    allowed.push(accepted);
  }
  if (allowed.length === 0) throw new SiteError(404, "There is no such page.");
  ctx.set("Allow", allowed.join(", "));
  throw new SiteError(405, `This address accepts ${allowed.join(", ")} only.`);
}

const titles: Record<number, string> = {
  400: "That did not work",
  403: "Not allowed",
  404: "Not found",
  405: "Not that way",
  409: "It has changed",
  410: "No longer here",
  429: "Too often",
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
        "This account is suspended or deleted; nothing was done. Sign in again to read why and to appeal.",
      ),
    );
    return;
  }
  if (error instanceof NotModerator) {
    fail(visit, new SiteError(404, "There is no such page."));
    return;
  }
  if (error instanceof SiteError) {
    if (error.retryAfter !== null) ctx.set("Retry-After", String(error.retryAfter));
    const title = titles[error.status] ?? "Not just now";
    page(
      visit,
      title,
      html`<h1>${title}</h1><p>${error.message}</p><p><a href="/">To the studies</a></p>`,
      error,
    );
    return;
  }
  const requestId = randomUUID();
  if (!isDisconnect(error)) logFault(service, requestId, error);
  const body = html`<h1>Not just now</h1><p>The service cannot answer at the moment; please try again soon.</p>
<p class="hint">Request ${requestId}</p>`;
  page(visit, "Not just now", body, { status: 503 });
}
