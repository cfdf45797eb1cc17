/** Below a study: which visitor sees which form, what is quoted, what is hidden from whom. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { StudyPackage } from "../../src/contracts/studies/index.js";
import { html } from "../../src/studies/site/html.js";
import { commentActions, goneSentence, studyActions } from "../../src/studies/site/pages/actions.js";
import { discussionView, quoteOf } from "../../src/studies/site/pages/discussion.js";
import { samplePackage } from "./support/packages.js";
import { author, moderator, origin, reader, rowOf, uuid, visitOf, type Who } from "./support/visitors.js";

test("forms below a study are those that its visitor can use in its state", () => {
  const forms = (who: Who, change: object, standings: string[] = ["published"]) => {
    const versions = standings.map((standing, at) => ({ version: at + 1, standing }));
    const { markup = "" } = studyActions(visitOf(who), rowOf(change), versions) ?? {};
    return [...markup.matchAll(/action="\/studies\/s\/([a-z]+)"/g)].map(([, name]) => name);
  };
  const published = {};
  const withdrawn = { standing: "withdrawn", listed: 0 };
  const removed = { standing: "removed", listed: 0 };
  for (const [who, change, versions, expected] of [
    [null, published, undefined, []],
    [reader, published, undefined, ["report"]],
    [author, published, undefined, ["withdraw"]],
    [moderator, published, undefined, ["remove", "report"]],
    [{ id: "author", moderator: true }, published, undefined, ["withdraw", "remove"]],
    [reader, withdrawn, undefined, []],
    [author, withdrawn, undefined, []],
    [moderator, withdrawn, undefined, []],
    [author, removed, undefined, ["appeal"]],
    [author, published, ["removed", "published"], ["appeal", "withdraw"]],
    [reader, removed, undefined, []],
    [moderator, removed, undefined, ["reinstate"]],
    [moderator, published, ["removed", "published"], ["remove", "reinstate", "report"]],
    [reader, published, ["removed", "published"], ["report"]],
    // No version stands any more, though the study does.
    [author, { listed: 0 }, ["withdrawn"], []],
    [moderator, { listed: 0 }, ["removed"], ["reinstate"]],
  ] as [Who, object, string[] | undefined, string[]][]) {
    assert.equal(forms(who, change, versions), expected, JSON.stringify([who, change, versions]));
  }
  const versions = ["published", "withdrawn", "removed", "published"].map((standing, at) => ({
    version: at + 1,
    standing,
  }));
  const choices = (markup = "") =>
    [...markup.matchAll(/<select id="([a-z]+)-version".*?<\/select>/gs)].map(([select, name]) => [
      name,
      ...[...select.matchAll(/<option value="(\d+)"/g)].map(([, version]) => version),
    ]);
  assert.equal(choices(studyActions(visitOf({ id: "author", moderator: true }), rowOf(), versions)?.markup), [
    ["withdraw", "1", "4"],
    ["remove", "1", "4"],
    ["reinstate", "3"],
  ]);
  assert.is(goneSentence({ standing: "withdrawn", at: 0, reason: "" }), "This was withdrawn by its author.");
  assert.is(goneSentence({ standing: "removed", at: 0, reason: "" }), "This was removed by a moderator.");
});

test("forms below a comment depend on the visitor; edits are possible for 15 minutes", () => {
  const now = Date.now();
  const forms = (who: Who, change: object = {}) => {
    const comment = {
      id: "c",
      study_id: "s",
      account_id: "author",
      hidden: null,
      created_at: now,
      body: "<said>",
      ...change,
    };
    const { markup = "" } = commentActions(visitOf(who), comment) ?? {};
    return [...markup.matchAll(/action="\/comments\/c\/([a-z]+)"/g)].map(([, name]) => name);
  };
  const late = { created_at: now - 15 * 60_000 };
  const soon = { created_at: now - 5 * 60_000 };
  for (const [who, change, expected] of [
    [null, {}, []],
    [author, soon, ["edit", "delete"]],
    [author, late, ["delete"]],
    [author, { ...soon, hidden: "hidden" }, ["delete"]],
    [author, { hidden: "deleted" }, []],
    [reader, {}, ["report"]],
    [reader, { hidden: "hidden" }, []],
    [moderator, {}, ["report", "hide", "erase"]],
    [moderator, { hidden: "hidden" }, ["show", "erase"]],
    [moderator, { hidden: "deleted" }, []],
  ] as [Who, object, string[]][]) {
    assert.equal(forms(who, change), expected, JSON.stringify([who, change]));
  }
});

const comment = (number: number, change: object = {}) =>
  ({
    ...{
      id: uuid(number),
      study_id: "s",
      account_id: "author",
      author: "Ada",
      handle: "ada",
      parent_id: null,
    },
    ...{
      created_at: 0,
      edited_at: null,
      hidden: null,
      reason: null,
      body: `said ${number}`,
      thread: "000001",
    },
    ...change,
  }) as Parameters<typeof quoteOf>[2][number];

test("a URL's quotation is offered to those who may reply", () => {
  const entries = [
    { id: uuid(1), kind: "note", title: "One", answer: "answer", note: "note", prompt: "prompt" },
    { id: uuid(2), kind: "note", title: "Two", note: "note", prompt: "prompt" },
    { id: uuid(3), kind: "note", title: "", prompt: "prompt" },
    { id: uuid(4), kind: "note", title: "Four" },
    { id: uuid(5), kind: "note", title: "" },
    { id: uuid(6).replace("8000", "A000"), kind: "note", title: "Six" },
  ];
  const content = samplePackage({ entries } as unknown as Partial<StudyPackage>);
  const comments = [comment(11), comment(12, { hidden: "hidden" })];
  const quoted = (asked: string, who: Who = reader, change: object = {}) =>
    quoteOf(visitOf(who, asked), { row: rowOf(change), content, version: 3 }, comments);
  const entry = (number: number, name: string, words: string, id = uuid(number)) => ({
    parent: null,
    text: `> [${name}](${origin}/studies/s/v/3#entry-${id})\n>\n> ${words}\n\n`,
  });
  assert.equal(quoted(`quote=entry-${uuid(1)}`), entry(1, "One, version 3", "answer"));
  assert.equal(quoted(`quote=entry-${uuid(2)}`), entry(2, "Two, version 3", "note"));
  assert.equal(quoted(`quote=entry-${uuid(3)}`), entry(3, "An entry of version 3", "prompt"));
  assert.equal(quoted(`quote=entry-${uuid(4)}`), entry(4, "Four, version 3", "Four"));
  const [, , , , , sixth] = entries;
  assert.equal(
    quoted(`quote=entry-${sixth?.id.toLowerCase()}`),
    entry(6, "Six, version 3", "Six", sixth?.id as string),
  );
  assert.equal(quoted(`quote=comment-${uuid(11)}`), {
    parent: uuid(11),
    text: `> [Ada wrote](${origin}/comments/${uuid(11)})\n>\n> said 11\n\n`,
  });
  for (const nothing of [
    "",
    "quote=",
    `quote=entry-${uuid(5)}`,
    `quote=entry-${uuid(9)}`,
    `quote=comment-${uuid(12)}`,
    `quote=comment-${uuid(1)}`,
    "quote=entry-1",
    `quote=other-${uuid(1)}`,
    `quote=x-entry-${uuid(1)}`,
  ])
    assert.is(quoted(nothing), null, nothing);
  assert.is(quoted(`quote=entry-${uuid(1)}`, null), null);
  assert.is(quoted(`quote=entry-${uuid(1)}`, reader, { listed: 0 }), null);
});

test("a page of a discussion: depth, hidden comments, next page, prefilled replies", async () => {
  const view = async (
    who: Who,
    shown: Partial<Parameters<typeof discussionView>[2]> = {},
    change: object = { comment_count: 1 },
  ) =>
    (
      await discussionView(visitOf(who), rowOf(change), {
        ...{ comments: [], offset: 0, quote: null, texts: async (text: string) => html`<i>${text}</i>` },
        ...shown,
      })
    ).markup;
  const said = (change: object) => ({ comments: [comment(1, change)] });
  const nobody = "No comments yet.";
  assert.match(await view(null, {}, { comment_count: 0 }), nobody);
  assert.not.match(await view(null), nobody);
  const links = async (offset: number, comment_count: number) =>
    [
      ...(await view(null, { offset }, { comment_count })).matchAll(
        /href="\?comments=(\d+)#discussion">(?:← )?(\w+)/g,
      ),
    ].map(([, to, name]) => `${name} ${to}`);
  assert.equal(await links(0, 50), []);
  assert.equal(await links(0, 51), ["Later 50"]);
  assert.equal(await links(50, 51), ["Earlier 0"]);
  assert.equal(await links(20, 71), ["Earlier 0", "Later 70"]);
  assert.equal(await links(100, 151), ["Earlier 50", "Later 150"]);
  // Of users allowed to see it.
  assert.match(await view(null, said({})), "<i>said 1</i>");
  for (const [who, hidden, reason, text, sentence] of [
    [reader, "hidden", "rude", false, "Hidden by a moderator: rude"],
    [moderator, "hidden", "rude", true, "Hidden by a moderator: rude"],
    [moderator, "deleted", null, false, "Deleted by its author."],
    [reader, "deleted", "spam", false, "Deleted by a moderator: spam"],
  ] as const) {
    const markup = await view(who, said({ hidden, reason, edited_at: 5 }));
    assert.is(markup.includes("<i>said 1</i>"), text);
    assert.match(markup, sentence);
    assert.not.match(markup, "<summary>Reply");
    assert.not.match(markup, "<li>edited ");
  }
  assert.not.match(await view(reader, said({})), 'class="gone"');
  assert.match(await view(null, said({ edited_at: 5 })), "<li>edited <time");
  for (const [thread, depth] of [
    [1, 0],
    [2, 1],
    [6, 5],
    [7, 5],
  ] as const)
    assert.match(await view(null, said({ thread: "00000a".repeat(thread) })), `<li class="depth-${depth}"`);
  // Who is signed in answers what stands.
  const forms = (markup: string) => (markup.match(/action="\/studies\/s\/comments"/g) ?? []).length;
  assert.equal(
    [
      await view(null, said({})),
      await view(reader, said({})),
      await view(reader, said({}), { listed: 0, comment_count: 1 }),
    ].map(forms),
    [0, 2, 0],
  );
  assert.match(await view(null), "Sign in</a> to comment");
  const open = "<details open><summary>Reply</summary>";
  const own = await view(reader, { ...said({}), quote: { parent: null, text: "> words" } });
  assert.not.match(own, open);
  assert.match(own, /<textarea id="body-new"[^>]*>\n&gt; words</);
  const answer = await view(reader, { ...said({}), offset: 50, quote: { parent: uuid(1), text: "> words" } });
  assert.match(answer, open);
  assert.match(answer, new RegExp(`<textarea id="body-${uuid(1)}"[^>]*>\\n&gt; words<`));
  assert.match(answer, /<textarea id="body-new"[^>]*>\n<\/textarea>/);
  assert.match(answer, `href="?comments=50&amp;quote=comment-${uuid(1)}#body-${uuid(1)}"`);
});

test.run();
