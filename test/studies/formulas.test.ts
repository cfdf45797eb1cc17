/** Wide formulas in a browser: every part can be read, and the page is no wider than its window. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { saveDraft } from "../../src/studies/store/drafts.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { sha256Hex } from "../../src/studies/store/tokens.js";
import { inBrowser } from "../support/browser.js";
import { aroundWebsite, context, service } from "./support/browser.js";
import { samplePackage } from "./support/packages.js";

aroundWebsite();

const wide = Array.from({ length: 40 }, (_, at) => `a_{${at}} x^{${at}}`).join(" + ");
const method = `A displayed formula:

$$ y = ${wide} $$

One in a line: $y = ${wide}$ and after it a word. A short one, $E = mc^2$, beside it.

| name | value |
| --- | --- |
| in a table | $z = ${wide}$ |

- in a list: $w = ${wide}$
`;

interface Measured {
  formulas: { reach: boolean; scrolls: boolean; overflows: boolean }[];
  page: number;
  window: number;
}

const measure = `() => {
  const formulas = [...document.querySelectorAll("math")].map((math) => {
    const parts = [...math.querySelectorAll("mi, mn, mo")].map((part) => part.getBoundingClientRect());
    const right = Math.max(...parts.map((box) => box.right));
    // The nearest box that cuts off or scrolls what is wider than it.
    let box = math;
    while (box !== null && getComputedStyle(box).overflowX === "visible") box = box.parentElement;
    const inner = box ?? document.documentElement;
    return {
      reach: right - inner.getBoundingClientRect().left <= inner.scrollWidth + 1,
      scrolls: box !== null && /auto|scroll/.test(getComputedStyle(box).overflowX),
      overflows: right > innerWidth,
    };
  });
  return { formulas, page: document.documentElement.scrollWidth, window: innerWidth };
}`;

inBrowser("wide formulas scroll or fit at 390 and 1280 pixels without being cut off", async () => {
  const { store } = service.service;
  const { id: accountId } = await store.db
    .selectFrom("accounts")
    .select("id")
    .limit(1)
    .executeTakeFirstOrThrow();
  const bytes = Buffer.from(JSON.stringify(samplePackage({ method })));
  const saved = await saveDraft(store, { tokenId: "t", accountId, scopes: [] }, bytes, "t", null);
  const draftId = (saved as { id: string }).id;
  await publishDraft(store, { accountId, draftId, reviewedSha256: sha256Hex(bytes), replaces: null });
  for (const width of [390, 1280]) {
    const browsing = await context({ viewport: { width, height: 900 } });
    try {
      const page = await browsing.newPage();
      await page.goto(`${service.origin}/studies/${draftId}`);
      if (process.env.TAPLINE_PICTURES)
        await page.screenshot({
          path: `${process.env.TAPLINE_PICTURES}/formulas-${width}.png`,
          fullPage: true,
        });
      // As text: the tests' types have no document.
      const found = await page.evaluate<Measured>(`(${measure})()`);
      assert.is(found.formulas.length, 5);
      assert.ok(found.page <= found.window, `${found.page} > ${found.window}`);
      for (const formula of found.formulas) {
        const text = `${width}: ${JSON.stringify(formula)}`;
        assert.ok(formula.reach, text);
        assert.ok(!formula.overflows || formula.scrolls, text);
      }
      assert.ok(
        found.formulas.filter(({ overflows }) => overflows).length >= 1,
        "some are wider than the window",
      );
    } finally {
      await browsing.close();
    }
  }
});

test.run();
