import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  createApp,
  createRouter,
  type Listening,
  listen,
  localAccess,
  sharedAccess,
  underPath,
} from "../../../src/http/index.js";
import { aroundBrowser, inBrowser, newContext } from "../../support/browser.js";
import { until } from "../../support/until.js";

// A real browser against the access rules: what passes them is written down, whatever the page saw of it.
const passed: string[] = [];
const arrived = new Set<string>();
let guarded: Listening;
let elsewhere: Listening;

const inside = underPath("/lab", "/executions");
let friend: string;

aroundBrowser({
  async start() {
    const page = createRouter();
    page.get("/", (ctx) => {
      ctx.type = "html";
      ctx.body = "<!doctype html><title>elsewhere</title>";
    });
    elsewhere = await listen(createApp({ before: [], routers: [page] }), { port: 0 });
    friend = `http://friend.localhost:${elsewhere.port}`;
    const router = createRouter();
    router.get("/", (ctx) => {
      ctx.type = "html";
      ctx.body = "<!doctype html><title>own page</title>";
    });
    for (const path of ["/lab/*any", "/executions", "/v1/*any"]) {
      router.all(path, (ctx) => {
        passed.push(`${ctx.method} ${ctx.url}`);
        ctx.body = { ok: true };
      });
    }
    guarded = await listen(
      createApp({
        before: [
          (ctx, next) => {
            arrived.add(ctx.url);
            return next();
          },
          localAccess(inside),
          sharedAccess([friend], underPath("/v1")),
        ],
        routers: [router],
      }),
      { port: 0 },
    );
  },
  async end() {
    await guarded?.close();
    await elsewhere?.close();
  },
});

/** Everything that a page can do to make its browser send requests; each under a separate name. */
const attempts = `async (target) => {
  const at = (name) => target + (target.includes("?") ? "&" : "?") + name;
  const tag = (name, properties) => {
    const element = Object.assign(document.createElement(name), properties);
    document.body.append(element);
    return element;
  };
  const settled = [];
  const json = { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" };
  for (const mode of ["cors", "no-cors", "same-origin"]) {
    settled.push(fetch(at("get-" + mode), { mode }));
    settled.push(fetch(at("text-" + mode), { mode, method: "POST", body: "{}" }));
  }
  settled.push(fetch(at("json"), json), fetch(at("credentials"), { credentials: "include", mode: "no-cors" }));
  settled.push(fetch(at("keepalive"), { method: "POST", body: "{}", keepalive: true, mode: "no-cors" }));
  settled.push(fetch(at("delete"), { method: "DELETE" }), fetch(at("no-referrer"), { referrerPolicy: "no-referrer", mode: "no-cors" }));
  settled.push(fetch(at("form-data"), { method: "POST", body: new FormData(), mode: "no-cors" }));
  navigator.sendBeacon(at("beacon"), "{}");
  const old = new XMLHttpRequest();
  old.open("POST", at("xhr"));
  old.setRequestHeader("Content-Type", "text/plain");
  old.send("{}");
  new EventSource(at("events"));
  new WebSocket(at("socket").replace("http", "ws"));
  tag("img", { src: at("img") });
  tag("img", { src: at("img-anonymous"), crossOrigin: "anonymous" });
  tag("script", { src: at("script") });
  tag("script", { src: at("module"), type: "module" });
  tag("link", { rel: "stylesheet", href: at("style") });
  tag("link", { rel: "prefetch", href: at("prefetch") });
  tag("link", { rel: "preload", as: "fetch", href: at("preload") });
  tag("link", { rel: "icon", href: at("icon") });
  tag("video", { src: at("video"), preload: "auto" });
  tag("audio", { src: at("audio"), preload: "auto" });
  tag("object", { data: at("object"), type: "text/html" });
  tag("embed", { src: at("embed") });
  tag("iframe", { src: at("frame") });
  tag("iframe", { srcdoc: '<img src="' + at("sandboxed") + '">', sandbox: "allow-scripts" });
  tag("iframe", { srcdoc: "<script>fetch('" + at("opaque") + "', {method: 'POST', body: '{}', mode: 'no-cors'})<\\/script>", sandbox: "allow-scripts" });
  tag("div", { style: "background: url(" + at("css") + ")" });
  for (const enctype of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
    tag("iframe", { name: enctype });
    const form = tag("form", { method: "POST", action: at("form-" + enctype), enctype, target: enctype });
    form.append(Object.assign(document.createElement("input"), { name: "{", value: "}" }));
    form.submit();
  }
  try { new Worker(URL.createObjectURL(new Blob(["fetch('" + at("worker") + "', {method: 'POST', body: '{}', mode: 'no-cors'})"]))); } catch {}
  await Promise.allSettled(settled);
  await new Promise((resolve) => setTimeout(resolve, 300));
}`;

/** What arrived so far, by name, whichever page it came from. */
const kinds = () => new Set([...arrived].map((url) => url.split("?")[1]));

/** Leaves each page when most of its attempts have reached the port: the attempts are real. */
async function attack(from: string, paths: readonly string[]): Promise<void> {
  arrived.clear();
  const context = await newContext({});
  await context.addCookies([{ name: "a", value: "b", url: `http://localhost:${guarded.port}` }]);
  const page = await context.newPage();
  await page.goto(from);
  const targets = paths.map((path) => `http://localhost:${guarded.port}${path}`);
  await page.evaluate(`Promise.all(${JSON.stringify(targets)}.map(${attempts}))`);
  await until(() => kinds().size >= 20, "most attempts arrived");
  await context.close();
}

inBrowser("no page's request reaches the activations, whatever its origin", async () => {
  const pages = [
    `http://localhost:${guarded.port}/`, // our own page
    `http://localhost:${elsewhere.port}/`, // the same site
    `http://127.0.0.1:${elsewhere.port}/`, // another one
  ];
  passed.length = 0;
  for (const from of pages) await attack(from, ["/lab/thing", "/executions"]);
  assert.equal(passed, []);
});

inBrowser("typing the address, and a name that leads here, do not reach the inside either", async () => {
  passed.length = 0;
  const context = await newContext({});
  const page = await context.newPage();
  assert.is((await page.goto(`http://localhost:${guarded.port}/lab/thing`))?.status(), 403);
  assert.is(
    (await page.goto(`http://[::ffff:127.0.0.1]:${guarded.port}/lab/thing`).catch(() => null))?.status() ??
      403,
    403,
  );
  // Chromium resolves every name below localhost to loopback, as a rebound name would.
  for (const path of ["/lab/thing", "/v1/models"]) {
    assert.is((await page.goto(`http://evil.localhost:${guarded.port}${path}`))?.status(), 403);
  }
  assert.equal(passed, []);
  await context.close();
});

inBrowser(
  "pages of other sites start no work on /v1; those of an allowed origin do, and read it",
  async () => {
    passed.length = 0;
    await attack(`http://127.0.0.1:${elsewhere.port}/`, ["/v1/chat"]);
    assert.equal(
      passed.filter((line) => !/^(GET|OPTIONS) /.test(line)),
      [],
    );
    const context = await newContext({});
    const page = await context.newPage();
    await page.goto(`${friend}/`);
    const ask = (path: string) =>
      page.evaluate(
        `fetch("http://localhost:${guarded.port}${path}", {method: "POST", body: "{}", headers: {"Content-Type": "application/json", Authorization: "Bearer k"}}).then((answer) => answer.json())`,
      );
    assert.equal(await ask("/v1/chat"), { ok: true });
    const refused = await ask("/lab/thing").then(
      () => false,
      () => true,
    );
    assert.ok(refused, "CORS never opens /lab");
    await context.close();
  },
);

test.run();
