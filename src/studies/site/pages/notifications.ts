import { randomBytes } from "node:crypto";
import { studyLimits } from "../../../contracts/studies/index.js";
import {
  findFeed,
  hasFeed,
  type NotificationRow,
  readNotifications,
  setAllRead,
  setFeed,
  setRead,
} from "../../store/notifications.js";
import { sha256Hex } from "../../store/tokens.js";
import { firstCharacters } from "../../text/display.js";
import { withoutMarkup } from "../../text/plain.js";
import { absolute, commentPath, studyPath } from "../address.js";
import { type Html, html } from "../html.js";
import { csrfField, page, when } from "../layout.js";
import { Reveal, type Shown } from "../reveal.js";
import { beforeOf, readForm, requireSession, SiteError, seeOther, type Visit } from "../visit.js";
import { plain, sendXml, xml } from "./xml.js";

const pageSize = 50;
const feedEntries = 30;
const shownOfComment = 300;

/** A notification's text. */
interface Message {
  sentence: string;
  /** Link target; null if it no longer exists. */
  path: string | null;
  /** Excerpt of the text that it is about; null if none. */
  excerpt: string | null;
}

const outcomeWords = { held: "it held", partly: "it held partly", failed: "it failed" } as const;

/** @param reader account id of the recipient */
function messageOf(row: NotificationRow, reader: string): Message {
  const who =
    row.actorName === null || row.actorHandle === null
      ? "A deleted account"
      : `${row.actorName} (@${row.actorHandle})`;
  const readable = row.listed === 1 || row.studyAccount === reader;
  const title = row.title === null || !readable ? "a study that is no longer available" : `“${row.title}”`;
  const study = row.study_id === null ? null : studyPath(row.study_id);
  const comment = row.comment_id === null ? null : commentPath(row.comment_id);
  const body =
    row.body === null || row.hidden !== null || !readable
      ? null
      : withoutMarkup(firstCharacters(row.body, shownOfComment));
  switch (row.kind) {
    case "reply":
      return { sentence: `${who} replied to your comment on ${title}`, path: comment, excerpt: body };
    case "comment":
      return { sentence: `${who} commented on your study ${title}`, path: comment, excerpt: body };
    case "reproduction": {
      const there = row.otherListed === 1 && row.by_study_id !== null;
      const outcome = row.outcome === null || !there ? "" : `: ${outcomeWords[row.outcome]}`;
      return {
        sentence: `${who} reproduced your study ${title}${outcome}`,
        path: there ? studyPath(row.by_study_id as string) : study,
        excerpt: there ? row.otherTitle : null,
      };
    }
    case "draft":
      return {
        sentence: "A draft is ready for your review",
        path: `/drafts/${row.draft_id}`,
        excerpt: row.draftTitle,
      };
    case "removed":
      return { sentence: `A moderator removed ${title}`, path: study, excerpt: row.studyReason };
    case "reinstated":
      return { sentence: `A moderator reinstated ${title}`, path: study, excerpt: null };
    case "hidden":
      return {
        sentence: `A moderator ${row.hidden === null ? "hid and then restored" : "hid"} your comment on ${title}`,
        path: comment,
        excerpt: row.commentReason,
      };
  }
}

/** The signed-in person's notifications, newest first. */
export async function notifications(visit: Visit): Promise<void> {
  await show(visit, null);
}

/** @param made address of a feed that was just created; it is shown only once */
async function show(visit: Visit, made: string | null): Promise<void> {
  const { account } = requireSession(visit);
  const { store } = visit.service;
  const before = beforeOf(visit);
  const [rows, feed] = await Promise.all([
    readNotifications(store, account.id, { before, limit: pageSize }),
    hasFeed(store, account.id),
  ]);
  const reveal = new Reveal();
  const items = rows.map((row) => item(visit, row, account.id, reveal.show));
  const newest = rows[0];
  const last = rows.at(-1);
  page(
    visit,
    "Notifications",
    html`<h1>Notifications</h1>
<p class="lead">Replies to your comments, comments on and reproductions of your studies, drafts to review, and moderators' actions on your content. Stored for ${studyLimits.notification_days} days.</p>
${reveal.notice()}${
  before === undefined && newest !== undefined && rows.some((row) => row.read_at === null)
    ? html`<form method="post" action="/notifications/read">${csrfField(visit)}<input type="hidden" name="until" value="${newest.at}"><button class="quiet">Mark all as read</button></form>`
    : null
}${rows.length === 0 ? html`<p>${before === undefined ? "No notifications yet." : "No earlier notifications."}</p>` : null}
<ol class="feed notifications">${items}</ol>
${rows.length < pageSize || last === undefined ? null : html`<p><a href="?before=${last.at}-${last.id}">Earlier</a></p>`}
<h2 id="feed">Private feed</h2>
<p>Your notifications as an Atom feed. Its address contains a secret: anyone who has it can read your notifications, so share it only with your feed reader. Titles of drafts are not included.</p>
${made === null ? null : madeNotice(made)}
<div class="actions"><form class="inline" method="post" action="/notifications/feed">${csrfField(visit)}<button class="quiet">${feed ? "Replace the address" : "Create an address"}</button></form>
${feed ? html`<form class="inline" method="post" action="/notifications/feed/end">${csrfField(visit)}<button class="danger">Delete the feed</button></form>` : null}</div>`,
  );
}

function madeNotice(address: string): Html {
  return html`<div class="notice good" role="status"><p><strong>Feed address created.</strong> Copy it now: you won't be able to see it again.</p>
<pre class="secret" id="feed-address" tabindex="0" role="region" aria-label="Address of your feed">${address}</pre></div>`;
}

function item(visit: Visit, row: NotificationRow, reader: string, shown: Shown): Html {
  const { sentence, path, excerpt } = messageOf(row, reader);
  const isNew = row.read_at === null;
  return html`<li class="${isNew ? "unread" : "read"}"><h2 dir="auto" id="notification-${row.id}">${isNew ? html`<span class="badge new">new</span> ` : null}${
    path === null ? shown(sentence) : html`<a href="${path}">${shown(sentence)}</a>`
  }</h2>
${excerpt === null || excerpt === "" ? null : html`<p class="snippet" dir="auto">${shown(excerpt)}</p>`}
<ul class="meta"><li>${when(row.at)}</li><li><form class="inline" method="post" action="/notifications/${row.id}/read">${csrfField(visit)}<input type="hidden" name="read" value="${isNew ? "yes" : "no"}"><button class="plain" aria-describedby="notification-${row.id}">${isNew ? "Mark as read" : "Mark as unread"}</button></form></li></ul></li>`;
}

export async function postReadAll(visit: Visit): Promise<void> {
  const { form, account } = await readForm(visit);
  const until = /^\d{1,15}$/.exec(form.get("until") ?? "")?.[0];
  if (until === undefined) throw new SiteError(400, "The form lacks a valid time.");
  await setAllRead(visit.service.store, account.id, Number(until));
  seeOther(visit.ctx, "/notifications");
}

export async function postRead(visit: Visit, id: string): Promise<void> {
  const { form, account } = await readForm(visit);
  if (!(await setRead(visit.service.store, account.id, id, form.get("read") !== "no")))
    throw new SiteError(404, "You have no such notification.");
  seeOther(visit.ctx, "/notifications");
}

/** Creates or replaces the feed's address; the old address stops working. */
export async function postFeed(visit: Visit): Promise<void> {
  const { account } = await readForm(visit);
  const secret = randomBytes(32).toString("base64url");
  await setFeed(visit.service.store, account.id, sha256Hex(secret));
  await show(visit, absolute(visit.service, `/notifications/feed/${secret}.atom`));
}

export async function postEndFeed(visit: Visit): Promise<void> {
  const { account } = await readForm(visit);
  await setFeed(visit.service.store, account.id, null);
  seeOther(visit.ctx, "/notifications#feed");
}

/**
 * The notifications as a feed, for anyone who has its address. Neither compressed nor cached: it is private and contains
 * text that others chose.
 */
export async function privateFeed(visit: Visit, secret: string): Promise<void> {
  const { ctx, service } = visit;
  const account = await findFeed(service.store, sha256Hex(secret));
  if (account === undefined) throw new SiteError(404, "Feed not found. It may have been deleted.");
  const rows = await readNotifications(service.store, account.id, { limit: feedEntries });
  const at = (path: string) => absolute(service, path);
  const time = (ms: number) => new Date(ms).toISOString();
  ctx.set("X-Robots-Tag", "noindex");
  sendXml(
    visit,
    "application/atom+xml",
    xml`<feed xmlns="http://www.w3.org/2005/Atom"><title>tapline studies: notifications</title><id>urn:uuid:${account.id}</id>
<author><name>tapline studies</name></author><link href="${at("/notifications")}"/><updated>${time(rows[0]?.at ?? 0)}</updated>
${rows.map((row) => {
  const { sentence, path, excerpt } = messageOf(row, account.id);
  // The feed reader's operator must not learn what a private draft is about.
  const summary = row.kind === "draft" || excerpt === null ? null : xml`<summary>${plain(excerpt)}</summary>`;
  return xml`<entry><title>${plain(sentence)}</title><id>urn:uuid:${row.id}</id><link href="${at(path ?? "/notifications")}"/><updated>${time(row.at)}</updated>${summary}</entry>
`;
})}</feed>`,
  );
}
