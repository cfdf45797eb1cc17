/**
 * How the website looks: an axe audit, and whether pages fit their window. TAPLINE_SCREENSHOTS=<folder> also keeps
 * pictures of the pages.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  api,
  aroundBrowserTests,
  context,
  inBrowser,
  service,
  signIn,
} from "../../studies/support/browser.js";
import { samplePackage } from "../../studies/support/packages.js";

const pictures = process.env.TAPLINE_SCREENSHOTS;

aroundBrowserTests();

inBrowser("axe finds nothing serious, light and dark, wide and narrow", async () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  for (const colorScheme of ["light", "dark"] as const) {
    for (const [shape, viewport] of [
      ["wide", { width: 1200, height: 900 }],
      ["narrow", { width: 380, height: 800 }],
    ] as const) {
      // Two of the four show every rule at work; pictures are taken of all.
      if (pictures === undefined && (colorScheme === "light") !== (shape === "wide")) continue;
      const visitor = await context({ colorScheme, viewport, bypassCSP: true });
      const page = await visitor.newPage();
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
        agents: "/agents",
      };
      for (const [name, path] of Object.entries({ ...paths, account: "/account", docs: "/docs" })) {
        await page.goto(service.origin + path);
        await page.evaluate(axe);
        const serious = await page.evaluate(async () => {
          // biome-ignore lint/suspicious/noExplicitAny: axe is a global of the page
          const { violations } = await (globalThis as any).axe.run();
          return violations
            .filter(({ impact }: { impact: string }) => impact === "serious" || impact === "critical")
            .map(({ id, nodes }: { id: string; nodes: { html: string }[] }) => `${id}: ${nodes[0]?.html}`);
        });
        assert.equal(serious, [], `${name}, ${colorScheme}, ${shape}`);
        const overflow = await page.evaluate(
          "document.documentElement.scrollWidth - document.documentElement.clientWidth",
        );
        assert.ok((overflow as number) <= 0, `${name} fits the ${shape} window`);
        if (pictures !== undefined) {
          await page.screenshot({ path: join(pictures, `studies-${name}-${colorScheme}-${shape}.png`) });
        }
      }
      await visitor.close();
    }
  }
});

async function pageWithDraft(page: Page, name: string): Promise<string> {
  await page.goto(`${service.origin}/agents`);
  await page.getByLabel("Name").fill(name);
  await page.getByLabel(/drafts:write/).check();
  await page.getByRole("button", { name: "Create token" }).click();
  const token = (await page.locator("#new-token").textContent()) ?? "";
  const study = samplePackage({
    title: `A draft to review (${name})`,
    finding: "Zero\u200bwidth, sk-abcdefghijklmnopqrstu",
  });
  const saved = await api(token, "/api/v1/studies", JSON.stringify(study));
  assert.is(saved.status, 201, saved.text);
  return `/drafts/${JSON.parse(saved.text).id}`;
}

test.run();
