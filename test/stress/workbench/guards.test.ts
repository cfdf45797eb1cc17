/** What other pages can do to the workbench, in a real browser: nothing. */
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundBrowser, inBrowser, newContext } from "../../support/browser.js";
import { until } from "../../support/until.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";
import { openMenu } from "../../workbench/menus.js";

let bench: Bench;
/** Another user's server on this machine, whose pages try things, and what it was sent. */
let foreign: { server: Server; url: string; seen: IncomingHttpHeaders[] };

aroundBrowser({
  async start() {
    const seen: IncomingHttpHeaders[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers);
      response.setHeader("Content-Type", "text/html");
      response.end("<!doctype html><title>another page</title><body></body>");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    foreign = { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
    bench = await startBench();
  },
  async end() {
    foreign?.server.close();
    await bench?.close();
  },
});

/** A page of the other server in a browser that is signed in at the workbench. */
async function elsewhere(): Promise<{ page: Page; close(): Promise<void> }> {
  const { context } = await visit(bench);
  const page = await context.newPage();
  await page.goto(foreign.url);
  return { page, close: () => context.close() };
}

inBrowser("the token leaves the address before anything else; a link opens one browser", async () => {
  const link = bench.workbench.link();
  const open = async () => {
    const context = await newContext({});
    const page = await context.newPage();
    const addresses: string[] = [];
    page.on("request", (request) => addresses.push(request.url()));
    await page.goto(link);
    return { context, page, addresses };
  };
  const first = await open();
  await first.page.getByRole("navigation", { name: "Views" }).waitFor();
  assert.is(first.page.url(), `${bench.workbench.url}/`);
  const token = link.split("#")[1] as string;
  assert.not(first.addresses.some((address) => new URL(address).pathname.includes(token)));
  assert.is(await first.page.evaluate("history.length"), 2, "about:blank and the page");
  const [cookie] = await first.context.cookies();
  assert.is(cookie?.name, `tapline_${bench.workbench.port}`);
  assert.ok(cookie?.httpOnly);
  assert.is(cookie?.sameSite, "Strict");
  assert.is(await first.page.evaluate("document.cookie"), "", "no script sees it");
  await first.page.reload();
  await first.page.getByRole("navigation", { name: "Views" }).waitFor();

  const second = await open();
  await second.page.getByText(/already been used/).waitFor();
  await second.context.close();
  const third = await visit(bench);
  assert.equal(third.troubles, []);
  await first.page.reload();
  await first.page.getByRole("navigation", { name: "Views" }).waitFor();
  await third.context.close();
  await first.context.close();
});

inBrowser("another origin's page reads nothing, starts nothing, and frames nothing", async () => {
  const { page, close } = await elsewhere();
  const tried = await page.evaluate(async (url) => {
    const attempts: Record<string, RequestInit> = {
      read: { credentials: "include" },
      "read without looking": { credentials: "include", mode: "no-cors" },
      "send text": { method: "POST", body: '{"text":"a"}', credentials: "include", mode: "no-cors" },
      "send JSON": {
        method: "POST",
        body: '{"text":"a"}',
        credentials: "include",
        headers: { "Content-Type": "application/json" },
      },
    };
    const results: Record<string, string> = {};
    for (const [name, init] of Object.entries(attempts)) {
      for (const path of ["/api/state", "/api/conversations", "/"]) {
        results[`${name} ${path}`] = await fetch(url + path, init).then(
          async (response) => `${response.type} ${(await response.text()).length}`,
          () => "refused",
        );
      }
    }
    return results;
  }, bench.workbench.url);
  // An opaque answer has no text; CORP and the guards make even those fail.
  for (const [name, result] of Object.entries(tried)) assert.match(result, /^(refused|opaque 0)$/, name);
  const framed = await page.evaluate(
    (url) =>
      new Promise<boolean>((resolve) => {
        // biome-ignore lint/suspicious/noExplicitAny: a global of the page
        const { document } = globalThis as any;
        const frame = document.createElement("iframe");
        frame.src = url;
        frame.onload = () => {
          let readable = false;
          try {
            readable = frame.contentDocument?.getElementById("app") != null;
          } catch {}
          resolve(readable);
        };
        document.body.append(frame);
      }),
    bench.workbench.url,
  );
  assert.not(framed);
  await until(
    () => page.frames()[1]?.url().startsWith("chrome-error:"),
    "the browser shows its own page in the frame",
  );
  await close();
});

inBrowser("a form of another local server is refused despite its cookie; so is the cookie", async () => {
  const { page, close } = await elsewhere();
  const { cookie } = foreign.seen.at(-1) as IncomingHttpHeaders;
  // This is what the second half of a session is for.
  assert.match(String(cookie), new RegExp(`tapline_${bench.workbench.port}=`), "cookies do not know ports");
  const status = await page.evaluate(
    (url) =>
      fetch(`${url}/api/state`, { credentials: "include" }).then(
        ({ status }) => status,
        () => "refused",
      ),
    bench.workbench.url,
  );
  assert.is(status, "refused");
  for (const type of ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data"]) {
    await page.goto(foreign.url);
    const answer = page.waitForResponse((response) => response.url().startsWith(bench.workbench.url));
    await page.evaluate(
      ([url, enctype]) => {
        // biome-ignore lint/suspicious/noExplicitAny: a global of the page
        const { document } = globalThis as any;
        const form = document.createElement("form");
        Object.assign(form, { method: "POST", action: `${url}/api/conversations`, enctype });
        const field = document.createElement("input");
        Object.assign(field, { name: '{"text":"a","x":"', value: '"}' });
        form.append(field);
        document.body.append(form);
        form.submit();
      },
      [bench.workbench.url, type] as const,
    );
    assert.is((await answer).status(), 403, type);
    await page.waitForURL(`${bench.workbench.url}/api/conversations`);
  }
  await close();
  const { page: own, context } = await visit(bench);
  assert.is(await own.getByRole("navigation", { name: "Conversations" }).locator("li").count(), 0);
  await context.close();
});

inBrowser("localhost and rebound names get nothing; an opened window cannot be read", async () => {
  const { page, close } = await elsewhere();
  const { port } = bench.workbench;
  const answer = await page.goto(`http://localhost:${port}/`);
  assert.is(answer?.status(), 403);
  assert.match((await page.textContent("body")) ?? "", new RegExp(`http://127\\.0\\.0\\.1:${port}/`));
  await page.goto(foreign.url);
  const reached = await page.evaluate(`new Promise((resolve) => {
    addEventListener("message", () => resolve("it answered"));
    const opened = open(${JSON.stringify(bench.workbench.url)});
    setInterval(() => {
      opened?.postMessage({ type: "token" }, "*");
      try {
        if (opened?.document.getElementById("app") != null) resolve("it was read");
      } catch {}
      if (opened === null || opened.closed) resolve("nothing");
    }, 20);
  })`);
  assert.is(reached, "nothing", "its opener policy cuts the two apart");
  await close();
});

inBrowser("after a restart the page says what to do; a new link resumes the session", async () => {
  const { page, context } = await visit(bench);
  await bench.restart();
  await page.getByText("tapline workbench --link").first().waitFor();
  await page.goto(bench.workbench.link());
  await page.getByRole("navigation", { name: "Views" }).waitFor();
  await openMenu(page, "Settings");
  await page.getByRole("button", { name: "Sign out everywhere" }).click();
  await page.getByText("You're not signed in. Open the link that `tapline workbench` printed.").waitFor();
  await until(async () => (await page.evaluate("localStorage.length")) === 0);
  await context.close();
});

test.run();
