/**
 * A published study as it is read, in a real browser: figures, formulas, tables; hostile texts; with scripts and without.
 * TAPLINE_SCREENSHOTS=<folder> keeps pictures of it.
 */
import { join } from "node:path";
import type { Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { StudyPackage } from "../../src/contracts/studies/index.js";
import { saveDraft } from "../../src/studies/store/drafts.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { hostile, hostileJobs } from "../report/jobs.js";
import { assertLooksWell, inBrowser } from "../support/browser.js";
import { aroundWebsite, context, log, service } from "./support/browser.js";
import { samplePackage } from "./support/packages.js";
import { resultBlock, studyWithResults } from "./support/results.js";

const pictures = process.env.TAPLINE_SCREENSHOTS;

aroundWebsite();

/** @returns the id of the study that a package becomes */
async function publish(content: StudyPackage): Promise<string> {
  const { store } = service.service;
  const { id: accountId } = await store.db.selectFrom("accounts").select("id").executeTakeFirstOrThrow();
  await store.db.updateTable("accounts").set({ recent_drafts: "[]" }).where("id", "=", accountId).execute();
  const bytes = Buffer.from(JSON.stringify(content));
  const draft = await saveDraft(store, { tokenId: accountId, accountId, scopes: [] }, bytes, "x", null);
  if (draft.outcome !== "saved") throw new Error(draft.outcome);
  const reviewed = { accountId, draftId: draft.id, reviewedSha256: draft.sha256, replaces: null };
  await publishDraft(store, reviewed);
  return draft.id;
}

inBrowser(
  "a study with a result of every operation: figures with their data, at every size, axe without findings",
  async () => {
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
      // Lens, answer's way, norms, next tokens; dose, differences; four of the probe; three of the SAE; features.
      assert.is(await figures.count(), 14);
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
    if (pictures !== undefined)
      await page.screenshot({ path: join(pictures, "study-print.png"), fullPage: true });
    await paper.close();
  },
);

/** What a script of a study would leave behind, and every element that no template of ours makes. */
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

inBrowser("hostile Markdown, formulas, results and links: nothing is injected, run or loaded", async () => {
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

inBrowser("nothing failed inside", async () => {
  assert.equal(log, []);
});

test.run();
