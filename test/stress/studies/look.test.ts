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
import { signInAccount } from "../../../src/studies/store/accounts.js";
import { approve } from "../../../src/studies/store/approvals.js";
import { addComment } from "../../../src/studies/store/discussion.js";
import { saveDraft as saveDraftIn } from "../../../src/studies/store/drafts.js";
import { remove, setCommentHidden, suspend, withdraw } from "../../../src/studies/store/moderation.js";
import { publishDraft } from "../../../src/studies/store/publish.js";
import { report } from "../../../src/studies/store/reports.js";
import { sha256Hex } from "../../../src/studies/store/tokens.js";
import { api, aroundWebsite, context, service, signIn } from "../../studies/support/browser.js";
import { formOf, hashOf, quantsBlock, quantsResult } from "../../studies/support/measurements.js";
import { samplePackage } from "../../studies/support/packages.js";
import { assertLooksWell, inBrowser } from "../../support/browser.js";

const pictures = process.env.TAPLINE_SCREENSHOTS;

aroundWebsite();

/** Two studies that measure the same forms. @returns the paths of one of them, and of the model */
async function measuredModel(): Promise<{ study: string; model: string }> {
  const { store } = service.service;
  const authors = await store.db.selectFrom("accounts").select("id").orderBy("created_at").limit(2).execute();
  let study = "";
  for (const [at, { id: accountId }] of authors.entries()) {
    const low = at === 0 ? 0.01 : 0.04;
    const forms = [
      formOf("Q8_0", { bytes: 145_000_000, kl: [0.0011, 0.001, 0.0012], survival: [0.97, 0.96, 0.98] }),
      formOf("Q4_K_M", {
        bytes: 105_000_000,
        kl: [low + 0.01, low, low + 0.02],
        survival: [0.81, 0.8, 0.82],
      }),
      {
        ...formOf("Q4_K_M"),
        name: "Q4_K_M (imatrix wiki.train.raw; Q4_K 71.2 %, Q6_K 28.8 %)",
        fingerprint: hashOf("x"),
      },
    ];
    const finding = quantsBlock(quantsResult("SmolLM2-135M", `${at}`, forms));
    const bytes = Buffer.from(JSON.stringify(samplePackage({ title: "What quantization does", finding })));
    const saved = await saveDraftIn(store, { tokenId: "none", accountId, scopes: [] }, bytes, "t", null);
    const draftId = (saved as { id: string }).id;
    const reviewed = { accountId, draftId, reviewedSha256: sha256Hex(bytes), replaces: null };
    study = `/studies/${((await publishDraft(store, reviewed)) as { id: string }).id}`;
  }
  return { study, model: `/models/${hashOf("SmolLM2-135M")}` };
}

inBrowser("axe finds nothing serious, light and dark, wide and narrow", async () => {
  const measured = await measuredModel();
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
      const first = await page.locator(".feed h2 a").nth(5).getAttribute("href");
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
      for (const [name, path] of Object.entries({
        ...paths,
        account: "/account",
        notifications: "/notifications",
        leave: "/account/delete",
        author: "/authors/mara-lindqvist",
        docs: "/docs",
        models: "/models",
        model: measured.model,
        measured: measured.study,
      })) {
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

/** Studies in every state with reports and a suspended account. @returns paths of pages by who looks at them */
async function moderatedWorld(): Promise<Record<string, Record<string, string>>> {
  const { store } = service.service;
  const visitor = await context();
  const page = await visitor.newPage();
  for (const who of ["Ada Sample", "Ben Sample", "Cleo Sample"]) {
    await page.context().clearCookies();
    await signIn(page, who);
  }
  await visitor.close();
  await approve(store, "moderator", "@cleo-sample");
  const accounts = await store.db.selectFrom("accounts").select(["id", "handle"]).execute();
  const idOf = (handle: string) => accounts.find((one) => one.handle === handle)?.id as string;
  const rows = await store.db
    .selectFrom("studies")
    .innerJoin("accounts", "accounts.id", "studies.account_id")
    .select(["studies.id", "studies.account_id", "accounts.handle"])
    .orderBy("published_at")
    .execute();
  const [reported, withdrawn, removed] = rows as [(typeof rows)[0], (typeof rows)[0], (typeof rows)[0]];
  const author = { issuer: "test", subject: "troll", name: `Somebody ${"with a long name ".repeat(5)}` };
  const troll = await signInAccount(store, { ...author, email: null, login: null });
  const say = async (body: string) => {
    const added = await addComment(store, { accountId: troll.id, name: troll.name }, reported.id, null, body);
    return (added as { id: string }).id;
  };
  const [rude, hidden] = [await say(`Rude words. ${"Very long. ".repeat(60)}`), await say("An address.")];
  const words = "It copies another study word for word \u202eand hides it\u202c. ".repeat(6);
  await report(store, idOf("ben-sample"), { studyId: reported.id, commentId: null }, words);
  await report(store, idOf("ben-sample"), { studyId: reported.id, commentId: rude }, "Rude.");
  await setCommentHidden(
    store,
    { accountId: idOf("cleo-sample") },
    hidden,
    "It had somebody's address in it.",
  );
  await suspend(store, { accountId: idOf("cleo-sample") }, troll, "Spam, again and again.");
  const whole = (id: string) => ({ studyId: id, version: null });
  await withdraw(
    store,
    withdrawn.account_id,
    whole(withdrawn.id),
    "The direction was that of another layer.",
  );
  await remove(store, "operator", whole(removed.id), `Somebody's letters were in it.\n${"x".repeat(120)}`);
  return {
    nobody: { withdrawn: `/studies/${withdrawn.id}`, "hidden-comment": `/studies/${reported.id}#discussion` },
    "Ben Sample": { report: `/studies/${reported.id}` },
    "Cleo Sample": {
      moderation: "/moderation",
      "moderation-log": "/moderation/log",
      "moderation-account": `/moderation/account?handle=${troll.handle}`,
      moderated: `/studies/${reported.id}`,
      removed: `/studies/${removed.id}`,
    },
  };
}

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
  await page.waitForURL(/#/);
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
  await page.getByRole("paragraph").filter({ hasText: "Written without a mouse." }).waitFor();
  await visitor.close();
});

// Last, because it takes studies down that the others look at.
inBrowser("axe has no serious finding in pages for moderators and readers of hidden studies", async () => {
  const paths = await moderatedWorld();
  for (const colorScheme of ["light", "dark"] as const) {
    for (const width of [320, 768, 1440]) {
      if (pictures === undefined && width !== (colorScheme === "light" ? 320 : 1440)) continue;
      const options = { colorScheme, viewport: { width, height: 900 }, bypassCSP: true };
      for (const [who, pages] of Object.entries(paths)) {
        const visitor = await context(options);
        const page = await visitor.newPage();
        if (who !== "nobody") await signIn(page, who);
        for (const [name, path] of Object.entries(pages)) {
          await page.goto(service.origin + path);
          await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
          const shape = `${name}-${colorScheme}-${width}`;
          await assertLooksWell(page, shape);
          if (pictures !== undefined)
            await page.screenshot({ path: join(pictures, `studies-${shape}.png`), fullPage: true });
        }
        await visitor.close();
      }
    }
  }
});

/** Presses Tab until the element in focus begins with a text, or has it as its id. */
async function tabTo(page: Page, wanted: string): Promise<void> {
  for (let presses = 0; presses < 300; presses += 1) {
    await page.keyboard.press("Tab");
    const found = await page.evaluate(
      `document.activeElement.id === ${JSON.stringify(wanted)} ||
        document.activeElement.textContent.startsWith(${JSON.stringify(wanted)})`,
    );
    if (found) return;
  }
  throw new Error(`300 presses of Tab did not reach ${wanted}.`);
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
