/**
 * How the website looks and is used: an axe audit, whether pages fit their window, the keyboard alone.
 * TAPLINE_SCREENSHOTS=<folder> also keeps pictures of the pages.
 */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { StudyPackage } from "../../../src/contracts/studies/index.js";
import { api, aroundWebsite, context, service, signIn } from "../../studies/support/browser.js";
import { samplePackage } from "../../studies/support/packages.js";
import { assertLooksWell, inBrowser } from "../../support/browser.js";

const pictures = process.env.TAPLINE_SCREENSHOTS;

aroundWebsite();

inBrowser("axe finds nothing serious, light and dark, wide and narrow", async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    for (const [shape, viewport] of [
      ["wide", { width: 1200, height: 900 }],
      ["narrow", { width: 380, height: 800 }],
    ] as const) {
      // Two of the four show every rule at work; pictures are taken of all.
      if (pictures === undefined && (colorScheme === "light") !== (shape === "wide")) continue;
      const visitor = await context({ colorScheme, viewport, bypassCSP: true });
      const page = await visitor.newPage();
      for (const path of ["/sign-in", "/nowhere", "/?q=nothing+has+these+words", "/top?page=99"]) {
        await page.goto(service.origin + path);
        await assertLooksWell(page, `${path}, ${colorScheme}, ${shape}`);
      }
      await signIn(page, "Ada Sample");
      await page.goto(service.origin);
      const first = await page.locator(".feed h2 a").nth(3).getAttribute("href");
      const draft = await pageWithDraft(page, `${colorScheme} ${shape}`);
      const paths = {
        feed: "/",
        top: "/top",
        study: first ?? "/",
        drafts: "/drafts",
        review: draft,
        hard: await hardDraft(page),
        agents: "/agents",
      };
      for (const [name, path] of Object.entries({ ...paths, account: "/account", docs: "/docs" })) {
        await page.goto(service.origin + path);
        await assertLooksWell(page, `${name}, ${colorScheme}, ${shape}`);
        if (pictures !== undefined) {
          await page.screenshot({ path: join(pictures, `studies-${name}-${colorScheme}-${shape}.png`) });
        }
      }
      await visitor.close();
    }
  }
});

inBrowser("the keyboard alone: past the navigation, search, open, comment", async () => {
  const visitor = await context();
  const page = await visitor.newPage();
  await signIn(page, "Ben Sample");
  await page.goto(service.origin);
  await page.keyboard.press("Tab");
  const focused = () => page.evaluate("document.activeElement.textContent || document.activeElement.id");
  assert.is(await focused(), "Skip to content");
  const outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle");
  assert.is(outline, "solid", "the focus is seen");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  assert.is(await focused(), "q", "behind the navigation comes the search");
  await page.keyboard.type("linear probe past tense");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Search results" }).waitFor();
  await tabTo(page, "A linear probe finds past tense");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Provenance" }).waitFor();
  await tabTo(page, "body-new");
  await page.keyboard.type("Written without a mouse.");
  await tabTo(page, "Comment");
  await page.keyboard.press("Enter");
  await page.getByText("Written without a mouse.").waitFor();
  await visitor.close();
});

/** Presses Tab until the element in focus begins with a text, or has it as its id. */
async function tabTo(page: Page, wanted: string): Promise<void> {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    const found = await page.evaluate(
      `document.activeElement.id === ${JSON.stringify(wanted)} ||
        document.activeElement.textContent.startsWith(${JSON.stringify(wanted)})`,
    );
    if (found) return;
  }
  throw new Error(`60 presses of Tab did not reach ${wanted}.`);
}

async function pageWithDraft(page: Page, name: string): Promise<string> {
  const study = samplePackage({
    title: `A draft to review (${name})`,
    finding: "Zero\u200bwidth, sk-abcdefghijklmnopqrstu",
  });
  return saveDraft(page, name, study);
}

/** A draft with what pages find hard: words without end, another direction, code, a deep tree. */
async function hardDraft(page: Page): Promise<string> {
  const ids = Array.from({ length: 12 }, () => randomUUID());
  const code = `\`\`\`python\nfor layer in model.layers:\n    print(layer, "${"x".repeat(120)}")\n\`\`\``;
  const study = samplePackage({
    title: `Llanfairpwll${"gwyngyllgogerychwyrndrobwll".repeat(4)}`,
    question: "هل يكفي حذف اتجاه واحد لإيقاف الرفض؟",
    finding: `Before.\n${code}\nAfter.`,
    model: { name: "m".repeat(300), revision: "0".repeat(200), runtime: "r".repeat(200) },
    entries: ids.map((id, index) => ({
      id,
      parent: ids[index - 1] ?? null,
      kind: "result" as const,
      title: index % 2 === 0 ? "" : "خط الأساس",
      prompt: code,
      settings: { temperature: 0.7, seed: 42, maxTokens: 256, thinking: "off" as const },
      finishReason: "stop",
    })),
  });
  return saveDraft(page, "hard", study);
}

async function saveDraft(page: Page, name: string, study: StudyPackage): Promise<string> {
  await page.goto(`${service.origin}/agents`);
  await page.getByLabel("Name").fill(name);
  await page.getByLabel(/drafts:write/).check();
  await page.getByRole("button", { name: "Create token" }).click();
  const token = (await page.locator("#new-token").textContent()) ?? "";
  const saved = await api(token, "/api/v1/studies", JSON.stringify(study));
  assert.is(saved.status, 201, saved.text);
  return `/drafts/${JSON.parse(saved.text).id}`;
}

test.run();
