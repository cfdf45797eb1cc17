/** The website in a real browser: Debian's chromium, driven by playwright-core, with JavaScript on and off. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { api, aroundWebsite, context, log, service, signIn } from "../../studies/support/browser.js";
import { samplePackage } from "../../studies/support/packages.js";
import { inBrowser } from "../../support/browser.js";
import { until } from "../../support/until.js";

aroundWebsite();

for (const javaScriptEnabled of [true, false]) {
  inBrowser(`the whole way, JavaScript ${javaScriptEnabled ? "on" : "off"}`, async () => {
    const visitor = await context({ javaScriptEnabled });
    const page = await visitor.newPage();
    const foreign: string[] = [];
    page.on("request", (request) => {
      const { host, hostname } = new URL(request.url());
      if (host !== new URL(service.origin).host && hostname !== "127.0.0.1") foreign.push(request.url());
    });
    await signIn(page, "Ada Sample");

    await page.goto(`${service.origin}/agents`);
    const name = `agent ${javaScriptEnabled}`;
    await page.getByLabel("Name").fill(name);
    await page.getByLabel(/^Expires after \(days, 1 to \d+\)/).fill("7");
    await page.getByLabel(/drafts:write/).check();
    await page.getByRole("button", { name: "Create token" }).click();
    const token = (await page.locator("#new-token").textContent()) ?? "";
    assert.match(token, /^tpl_\w{49}$/);
    await page.goto(`${service.origin}/agents`);
    assert.not.ok((await page.content()).includes(token), "shown once");

    const script = "<script>document.title='stolen'</script><img src=x onerror=alert(1)>";
    const study = samplePackage({
      title: `Browser study ${javaScriptEnabled}`,
      finding: `${script} \u202efdp.exe and AKIAABCDEFGHIJKLMNOP`,
    });
    const saved = await api(token, "/api/v1/studies", JSON.stringify(study));
    assert.is(saved.status, 201, saved.text);
    const { id, review_url: reviewUrl } = JSON.parse(saved.text);

    await page.goto(reviewUrl);
    const text = (await page.locator("main").textContent()) ?? "";
    assert.ok(text.includes("U+202E right-to-left override"), "hidden characters are named");
    assert.ok(text.includes("AWS access key at /finding"), "likely secrets are pointed out");
    assert.ok((await page.locator("pre").textContent())?.includes(script), "the JSON is shown as it is");
    await page.getByLabel(/I have read/).check();
    await page.getByRole("button", { name: "Publish" }).click();
    await page.waitForURL(`**/studies/${id}`);

    await page.goto(service.origin);
    await page.getByLabel("Search studies").fill(`browser STUDY ${javaScriptEnabled}`);
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("link", { name: study.title }).click();
    assert.is(await page.title(), `${study.title} · tapline studies`, "the stored script did not run");
    await page.getByLabel("Your comment").fill("Reproduced. <b>Well</b> done.");
    await page.getByRole("button", { name: "Comment", exact: true }).click();
    const said = page.getByRole("paragraph").filter({ hasText: "Reproduced. <b>Well</b> done." });
    await said.waitFor();
    assert.is(await page.getByRole("button", { name: /Upvote/ }).count(), 0, "no vote for oneself");
    await page.goto(service.origin);
    await page
      .locator(".feed h2 a")
      .nth(javaScriptEnabled ? -1 : -2)
      .click();
    await page.getByRole("button", { name: /^△ Upvote/ }).click();
    await page.getByRole("button", { name: /Upvoted · [1-9]/ }).waitFor();

    const second = await api(
      token,
      "/api/v1/studies",
      JSON.stringify({ ...study, finding: "Changed.", omissions: ["one"] }),
    );
    await page.goto(JSON.parse(second.text).review_url);
    await page.getByLabel("Publish as").selectOption({ label: `version 2 of “${study.title}”` });
    await page.getByRole("button", { name: "Select and show differences" }).click();
    await page.getByRole("heading", { name: "Difference from version 1" }).waitFor();
    assert.is(await page.locator("ins", { hasText: "Changed." }).count(), 1);
    await page.getByLabel(/I have read/).check();
    await page.getByRole("button", { name: "Publish" }).click();
    await page.waitForURL(`**/studies/${id}`);
    assert.ok((await page.locator("main").textContent())?.includes("version 2"));

    assert.is((await api(token, `/api/v1/studies/${id}`)).status, 200);
    await page.goto(`${service.origin}/agents`);
    await page.getByRole("link", { name }).click();
    assert.ok((await page.locator("table").textContent())?.includes("drafts.create"));
    await page.getByRole("button", { name: "Revoke" }).click();
    await page.getByText("revoked").first().waitFor();
    assert.is((await api(token, `/api/v1/studies/${id}`)).status, 401);

    await page.goto(`${service.origin}/account`);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("link", { name: "Sign in" }).first().waitFor();
    await page.goto(`${service.origin}/drafts`);
    assert.match(page.url(), /\/sign-in\?return=/);
    assert.equal(foreign, [], "no request leaves for another host");
    await visitor.close();
  });
}

inBrowser("accounts that are not approved can neither create tokens nor publish", async () => {
  const visitor = await context();
  const page = await visitor.newPage();
  await signIn(page, "Cleo Sample");
  await page.goto(`${service.origin}/agents`);
  assert.ok(
    (await page.locator("main").textContent())?.includes(
      "only approved accounts can create tokens. Yours is not approved yet.",
    ),
  );
  const answer = await page
    .evaluate(async () => {
      const form = await (await fetch("/account")).text();
      const csrf = /name="csrf" value="([^"]+)"/.exec(form)?.[1] ?? "";
      const body = new URLSearchParams({ csrf, name: "x", days: "1", scope: "public:read" });
      return (await fetch("/agents", { method: "POST", body })).status;
    })
    .catch((error) => String(error));
  // The page's own policy lets no script connect anywhere; the form itself is tried in site.test.ts.
  assert.match(String(answer), /Content Security Policy|Failed to fetch/);
  await visitor.close();
});

inBrowser("another site can neither post forms nor frame pages", async () => {
  const visitor = await context();
  const page = await visitor.newPage();
  await signIn(page, "Ada Sample");
  await page.goto(`${service.origin}/agents`);
  const csrf = await page.locator('input[name="csrf"]').first().getAttribute("value");
  const evil = createServer((request, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end(
      request.url === "/frame"
        ? `<iframe src="${service.origin}/agents"></iframe>`
        : `<form method="post" action="${service.origin}/agents"><input name="csrf" value="${csrf}">
           <input name="name" value="evil"><input name="days" value="1"><input name="scope" value="public:read">
           <button>go</button></form>`,
    );
  });
  await new Promise<void>((resolve) => evil.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(evil.address() as AddressInfo).port}`;
  await page.goto(address);
  await page.getByRole("button").click();
  await page.getByRole("heading", { name: "Not allowed" }).waitFor();
  await page.goto(`${service.origin}/agents`);
  assert.not.ok((await page.content()).includes("evil"));
  await page.goto(`${address}/frame`);
  const frame = await until(() => page.frames()[1]);
  await until(() => frame.url() !== "" && frame.url() !== "about:blank");
  assert.not.ok((await frame?.content().catch(() => ""))?.includes("Agent access"));
  await visitor.close();
  evil.close();
  evil.closeAllConnections();
});

inBrowser("nothing failed inside, and no log line holds a secret", async () => {
  assert.equal(log, []);
});

test.run();
