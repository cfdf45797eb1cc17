/**
 * How the website looks: an axe audit, and whether pages fit their window. TAPLINE_SCREENSHOTS=<folder> also keeps
 * pictures of the pages.
 */
import { join } from "node:path";
import type { Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
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
        await assertLooksWell(page, `${name}, ${colorScheme}, ${shape}`);
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
