/**
 * A published study as it is read, in a real browser: figures, formulas, tables; hostile texts; with scripts and without.
 * TAPLINE_SCREENSHOTS=<folder> keeps pictures of it.
 */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { StudyPackage } from "../../../src/contracts/studies/index.js";
import { accountsNamed, signInAccount } from "../../../src/studies/store/accounts.js";
import { addComment } from "../../../src/studies/store/discussion.js";
import { saveDraft } from "../../../src/studies/store/drafts.js";
import { publishDraft } from "../../../src/studies/store/publish.js";
import { hostile, hostileJobs } from "../../report/jobs.js";
import { aroundWebsite, context, log, service, signIn } from "../../studies/support/browser.js";
import { samplePackage } from "../../studies/support/packages.js";
import { reproduction } from "../../studies/support/people.js";
import { resultBlock, studyWithResults } from "../../studies/support/results.js";
import { assertLooksWell, inBrowser } from "../../support/browser.js";
import { downloaded } from "../../support/downloads.js";

const pictures = process.env.TAPLINE_SCREENSHOTS;

aroundWebsite();

/** @returns the id of the study that a package becomes */
async function publish(content: StudyPackage, by?: string): Promise<string> {
  const { store } = service.service;
  const first = await store.db.selectFrom("accounts").select("id").executeTakeFirstOrThrow();
  const accountId = by ?? first.id;
  await store.db.updateTable("accounts").set({ recent_drafts: "[]" }).where("id", "=", accountId).execute();
  const bytes = Buffer.from(JSON.stringify(content));
  const draft = await saveDraft(store, { tokenId: accountId, accountId, scopes: [] }, bytes, "x", null);
  if (draft.outcome !== "saved") throw new Error(draft.outcome);
  const reviewed = { accountId, draftId: draft.id, reviewedSha256: draft.sha256, replaces: null };
  await publishDraft(store, reviewed);
  return draft.id;
}

inBrowser("a study with every operation: figures with their data, at every size, axe clean", async () => {
  const id = await publish(studyWithResults());
  for (const [colorScheme, width] of [
    ["light", 1440],
    ["dark", 768],
    ["light", 320],
  ] as const) {
    const visitor = await context({ colorScheme, viewport: { width, height: 900 }, bypassCSP: true });
    const page = await visitor.newPage();
    await page.goto(`${service.origin}/studies/${id}`);
    const figures = page.locator("figure");
    // Lens, answer's way, norms, next tokens; dose, differences; four of the probe; three of the SAE; features;
    // recovery, and the furthest by layer; drift by layer, artefacts. Extraction results are text.
    assert.is(await figures.count(), 18);
    assert.match(
      (await page.locator("main").textContent()) ?? "",
      "every token's activation at 2 layers (0, 3)",
    );
    const headline = page.getByRole("figure", { name: "First figure" });
    assert.ok((await headline.locator("svg:visible").count()) > 0, "the abstract has a figure");
    await headline.getByRole("link").click();
    assert.match(page.url(), /#figure-1$/);
    const contents = page.getByRole("navigation", { name: "On this page" });
    await contents.getByRole("link", { name: "Result of drift" }).focus();
    await page.keyboard.press("Enter");
    assert.match(page.url(), /#entry-/);
    for (const figure of await figures.all()) {
      assert.ok((await figure.locator("svg:visible").count()) > 0, "a picture of the window's size");
      assert.ok((await figure.locator("table").textContent())?.length, "its data as a table");
    }
    assert.ok((await page.locator("math").count()) >= 3);
    assert.is(await page.getByRole("button", { name: "Copy" }).count(), 1, "one piece of code, one button");
    await assertLooksWell(page, `figures, ${colorScheme}, ${width}`);
    if (pictures !== undefined)
      await page.screenshot({ path: join(pictures, `study-${colorScheme}-${width}.png`), fullPage: true });
    await visitor.close();
  }
  const paper = await context({ viewport: { width: 794, height: 1100 }, colorScheme: "dark" });
  const page = await paper.newPage();
  await page.goto(`${service.origin}/studies/${id}`);
  await page.emulateMedia({ media: "print" });
  assert.ok((await page.locator("figure .drawing.wide svg:visible").count()) > 0);
  const colours = await page.evaluate(
    "[getComputedStyle(document.documentElement)].flatMap(({ color, backgroundColor }) => [color, backgroundColor])",
  );
  assert.equal(colours, ["rgb(29, 31, 35)", "rgb(251, 250, 247)"], "dark on light, whatever the screen is");
  if (pictures !== undefined)
    await page.screenshot({ path: join(pictures, "study-print.png"), fullPage: true });
  await paper.close();
});

/** Anything that a script in a study would leave, and every element that none of our templates makes. */
async function traces(page: Page): Promise<unknown> {
  return page.evaluate(() => {
    // biome-ignore lint/suspicious/noExplicitAny: the document of the page, not of this program
    const { document } = globalThis as any;
    return {
      broken: (globalThis as { broken?: unknown }).broken ?? null,
      elements: document.querySelectorAll(
        "script:not(head > script[src^='/assets/']), iframe, img, object, embed, style, base, form[action^='http'], input[type=image], [onload], [onerror], [onclick], [style], math a, svg a, svg image, foreignObject",
      ).length,
      addresses: [...document.querySelectorAll("main a")]
        .map((link) => link.protocol)
        .filter((protocol: string) => !["https:", "http:", "mailto:"].includes(protocol)),
    };
  });
}

inBrowser("hostile Markdown, formulas, results and links: nothing injected, run or loaded", async () => {
  const evil = [
    ...hostile,
    '<img src=x onerror="window.broken=1"><svg onload=window.broken=1>',
    "[x](javascript:window.broken=1) ![x](https://evil.example/x.png) <javascript:window.broken=1>",
    "$\\href{javascript:window.broken=1}{x} \\text{</mtext><script>window.broken=1</script>}$",
    "$$\n</math><img src=x onerror=window.broken=1>\n$$",
    '```x" onclick="window.broken=1\n</code></pre><script>window.broken=1</script>\n```',
    "| <script>window.broken=1</script> |\n| --- |\n| <style>*{display:none}</style> |",
  ].join("\n\n");
  const id = await publish(
    samplePackage({
      title: "Evil <script>window.broken=1</script>",
      question: evil.slice(0, 4000),
      finding: [evil, ...hostileJobs().map(resultBlock)].join("\n\n"),
      omissions: [evil.slice(0, 1000)],
    }),
  );
  for (const javaScriptEnabled of [true, false]) {
    // Without the policy, so that it is the markup that holds and not the policy alone.
    const visitor = await context({ bypassCSP: javaScriptEnabled, javaScriptEnabled });
    const page = await visitor.newPage();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).host));
    for (const path of ["", "?view=source", "/v/1"]) {
      await page.goto(`${service.origin}/studies/${id}${path}`);
      assert.ok(
        (await page.locator("main").textContent())?.includes("window.broken=1"),
        "it is shown as text",
      );
      if (javaScriptEnabled)
        assert.equal(await traces(page), { broken: null, elements: 0, addresses: [] }, path);
      else {
        assert.is(
          await page.getByRole("button", { name: "Copy" }).count(),
          0,
          "no button that could do nothing",
        );
        assert.ok((await page.locator("figure svg").count()) > 0 || path === "?view=source");
      }
    }
    assert.equal([...new Set(asked)], [new URL(service.origin).host], "no request leaves for another host");
    await visitor.close();
  }
});

inBrowser("hostile names, headings, comments and models inject nothing, and look well", async () => {
  const evil = '"><img src=x onerror=window.broken=1><script>window.broken=1</script>';
  const { store } = service.service;
  const visitor = await context({ viewport: { width: 320, height: 900 }, bypassCSP: true });
  const page = await visitor.newPage();
  await signIn(page, "Ada Sample");
  const [ada] = await accountsNamed(store.db, "@ada-sample");
  const mallory = await signInAccount(store, {
    issuer: "test",
    subject: "mallory",
    name: `Mallory ${evil} [x](javascript:window.broken=1)`,
    email: null,
    login: null,
  });
  const entry = {
    id: randomUUID(),
    kind: "note" as const,
    title: `Entry ${evil}`,
    note: hostile.join("\n\n"),
  };
  const content = {
    title: `Title ${evil}`.slice(0, 160),
    question: `${evil}\n\n# ${evil}`,
    method: `## [x](javascript:window.broken=1) ${evil}\n\n${"Words and words. ".repeat(180)}`,
    finding: `${hostile.join(" ")}\n\n# $\\href{javascript:x}{y}$ ${evil}`,
    model: { name: `Model ${evil}`, runtime: "x" },
  };
  const id = await publish(
    samplePackage({ ...content, entries: [entry, { ...entry, id: randomUUID() }] }),
    ada?.id,
  );
  const { sha256 } = await store.db
    .selectFrom("versions")
    .select("sha256")
    .where("study_id", "=", id)
    .executeTakeFirstOrThrow();
  const claim = { study: id, version: 1, package_sha256: sha256, outcome: "held", differed: evil };
  await publish(samplePackage({ ...content, finding: reproduction(claim) }), mallory.id);
  const author = { accountId: mallory.id, name: mallory.name };
  const said = await addComment(store, author, id, null, `${evil}\n\n> ${hostile.join("\n> ")}`);
  const comment = (said as { id: string }).id;
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).host));
  const model = encodeURIComponent(content.model.name);
  for (const [name, path] of Object.entries({
    notifications: "/notifications",
    study: `/studies/${id}`,
    "quoted entry": `/studies/${id}?quote=entry-${entry.id}`,
    "quoted comment": `/studies/${id}?quote=comment-${comment}`,
    facets: `/?model=${model}&sort=new`,
    author: `/authors/${mallory.handle}?q=words`,
    leave: "/account/delete",
    account: "/account",
  })) {
    await page.goto(`${service.origin}${path}`);
    assert.equal(await traces(page), { broken: null, elements: 0, addresses: [] }, name);
    await assertLooksWell(page, name);
    if (!["leave", "account"].includes(name))
      assert.match(await page.locator("main").innerHTML(), "&lt;img src=x onerror=window.broken=1", name);
    if (pictures !== undefined)
      await page.screenshot({ path: join(pictures, `hostile-${name}.png`), fullPage: true });
  }
  await page.goto(`${service.origin}/notifications`);
  await page.getByRole("button", { name: "Create an address" }).click();
  const address = (await page.locator("#feed-address").textContent()) ?? "";
  // Read as a program reads it: well-formed, every mark of it ours.
  const { content: feed } = await page.evaluate(async (url) => {
    const text = await (await fetch(url)).text();
    // biome-ignore lint/suspicious/noExplicitAny: a parser of the page's, not of this program
    const parsed = new (globalThis as any).DOMParser().parseFromString(text, "application/xml");
    const names = [...parsed.querySelectorAll("*")].map((one: { tagName: string }) => one.tagName);
    return { content: [...new Set(names)].sort().join() };
  }, address);
  assert.is(feed, "author,entry,feed,id,link,name,summary,title,updated");
  assert.equal([...new Set(asked)], [new URL(service.origin).host], "no request leaves for another host");
  await visitor.close();
});

inBrowser("without JavaScript: a private feed, the data export, and leaving", async () => {
  const visitor = await context({ javaScriptEnabled: false });
  const page = await visitor.newPage();
  await signIn(page, "Cleo Sample");
  await page.getByRole("link", { name: "Notifications" }).click();
  await page.getByRole("button", { name: "Create an address" }).click();
  assert.match(
    (await page.locator("#feed-address").textContent()) ?? "",
    /\/notifications\/feed\/[\w-]{43}\.atom$/,
  );
  await page.goto(`${service.origin}/account`);
  // One that fails has no path to its bytes.
  const { name } = await downloaded(page, () =>
    page.getByRole("button", { name: "Download my data" }).click(),
  );
  assert.is(name, "tapline-studies-cleo-sample.tar");
  await page.goto(`${service.origin}/account`);
  await page.getByRole("link", { name: /Delete this account/ }).click();
  assert.match((await page.locator("main").textContent()) ?? "", "What stays, under “deleted account”");
  await page.getByLabel(/Type your handle/).fill("@cleo-sample");
  await page.getByRole("button", { name: "Permanently delete my account" }).click();
  await page.getByRole("heading", { name: "Your account is deleted" }).waitFor();
  await page.getByRole("link", { name: "Sign in" }).waitFor();
  await visitor.close();
});

inBrowser("nothing failed inside", async () => {
  assert.equal(log, []);
});

test.run();
