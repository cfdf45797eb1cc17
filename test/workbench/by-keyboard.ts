/** Goes through a page with the Tab key, as users without a mouse do; the focus has to be visible, and to have a name. */
import type { Locator, Page } from "playwright-core";
import * as assert from "uvu/assert";
import { until } from "../support/until.js";

/** Tab stops that a view may have before what is looked for. */
const mostStops = 200;

/** In the page: what has the focus, as it is announced, and whether one sees it. */
const focused = `(() => {
  const at = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  const named = (at.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent);
  return {
    name: (at.getAttribute("aria-label") ?? (named.join(" ").trim() || at.labels?.[0]?.textContent || at.textContent) ?? "").trim(),
    tag: at.tagName.toLowerCase(),
    shown: at.tagName === "BODY" || at.id === "content" || (outlineStyle !== "none" && parseFloat(outlineWidth) >= 2),
  };
})()`;

interface Focused {
  name: string;
  tag: string;
  shown: boolean;
}

/** Elements that become a tab stop only after another event: no user looks for them before. */
export async function offered(control: Locator): Promise<void> {
  await control.waitFor();
  await until(() => control.isEnabled(), `${control} is enabled`);
}

/** Goes on with Tab until something of that name has the focus. */
export async function tabTo(page: Page, name: RegExp, tag?: string): Promise<void> {
  const passed: string[] = [];
  for (let stop = 0; stop < mostStops; stop += 1) {
    await page.keyboard.press("Tab");
    const at = (await page.evaluate(focused)) as Focused;
    assert.ok(at.shown, `the focus is seen on ${at.tag} ${at.name}`);
    if (at.tag !== "body") assert.ok(at.name !== "", `${at.tag} behind ${passed.at(-1)} has a name`);
    if (name.test(at.name) && (tag === undefined || at.tag === tag)) return;
    passed.push(`${at.tag} ${at.name.slice(0, 40)}`);
  }
  assert.unreachable(`${name} is not a tab stop; there are ${[...new Set(passed)].join(", ")}`);
}
