/** Before services that answer as the test says: hostile texts everywhere, and services that go and come back. */
import { mkdtempSync, rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { newLink, openWorkbench } from "../../src/cli/commands/workbench-run.js";
import { type Seen, scripted, sendJson } from "../client/scripted.js";
import { hostile, inspectJob } from "../report/jobs.js";
import { aroundBrowser, inBrowser } from "../support/browser.js";
import { downloaded } from "../support/downloads.js";
import { until } from "../support/until.js";
import { type Bench, startBench, visit } from "./bench.js";
import { openMenu } from "./menus.js";

const jobId = "0123456789abcdef0123456789abcdef";
const nasty = hostile.join(" ");
const job = {
  ...inspectJob(hostile),
  id: jobId,
  status: "completed",
  model: nasty,
  progress: { stage: "done", done: 1, total: 1 },
  created: 1,
  started: 2,
  ended: 3,
};

declare function getComputedStyle(element: unknown): { unicodeBidi: string };

/** How the services behave; the tests change it. */
const behaviour = { gone: false, breaksAfter: Number.POSITIVE_INFINITY, tokens: hostile };
let service: Awaited<ReturnType<typeof scripted>>;
let bench: Bench;

aroundBrowser({
  async start() {
    service = await scripted(answer);
    const { url } = service;
    bench = await startBench(async () => ({ server: url, lab: url, close: service.close }));
  },
  end: () => bench?.close(),
});

const summary = { ...job, config: undefined, result: undefined };
const told: Record<string, unknown> = {
  "GET /lab/capabilities": {
    model: nasty,
    n_layer: 4,
    n_embd: 8,
    architecture: nasty,
    backend: "cpu",
  },
  "GET /lab/vectors": { vectors: [] },
  "GET /lab/probes": { probes: [] },
  "GET /lab/dictionaries": { dictionaries: [] },
  "GET /lab/v1/health": { api_version: 1, active_job: null, queued: 0 },
  "GET /lab/v1/jobs": {
    jobs: [summary, { ...summary, id: jobId.replace("0", "f"), status: "failed", error: nasty }],
  },
  [`GET /lab/v1/jobs/${jobId}`]: job,
};

function answer({ path, method }: Seen, response: ServerResponse): void {
  const body = told[`${method} ${path}`];
  if (behaviour.gone) response.destroy();
  else if (path === "/v1/chat/completions") stream(response);
  else sendJson(response, body === undefined ? 404 : 200, body ?? { error: nasty });
}

/** An answer of hostile tokens, with hostile candidates and lenses. */
function stream(response: ServerResponse): void {
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  for (const [index, token] of behaviour.tokens.entries()) {
    if (index >= behaviour.breaksAfter) {
      // Written bytes arrive, and then the connection ends in the middle of the body.
      response.socket?.end();
      return;
    }
    const candidate = { id: index, token, logprob: -1 };
    const lens = [{ token_id: index, token, probability: 0.5 }];
    const tapline = {
      tokens: [{ index, token_id: index, token, norms: { 0: 1, 3: 2 }, lens: { 0: lens, 3: lens } }],
    };
    const logprobs = { content: [{ ...candidate, top_logprobs: [candidate] }] };
    const choices = [{ index: 0, delta: { content: token }, finish_reason: null, tapline, logprobs }];
    response.write(`data: ${JSON.stringify({ choices })}\n\n`);
  }
  const choices = [{ index: 0, delta: {}, finish_reason: "stop" }];
  response.end(`data: ${JSON.stringify({ choices })}\n\ndata: [DONE]\n\n`);
}

async function ask(page: Page, question: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message" }).fill(question);
  await page.keyboard.press("Enter");
}

inBrowser("text from models, jobs and names stays text: no element, no request, no script", async () => {
  const { page, context, troubles } = await visit(bench);
  await page.getByRole("checkbox", { name: "Markdown" }).uncheck();
  await ask(page, nasty);
  await page.getByText(`${hostile.length} tokens`, { exact: true }).waitFor();
  const spans = page.locator(".answer-text .t");
  const wellFormed = (text: string) => text.replace(/\ud800/g, "\ufffd");
  assert.equal((await spans.allTextContents()).map(wellFormed), hostile.map(wellFormed));
  assert.equal(
    await spans.first().evaluate((span) => getComputedStyle(span).unicodeBidi),
    "isolate",
    "no token turns the direction of its neighbours",
  );
  await spans.first().click();
  await page.getByRole("region", { name: "Inside a token" }).waitFor();
  // Kept as files: no spreadsheet computes anything, and the picture is one, with words alone.
  await openMenu(page, /^Export “Answer to /);
  const kept = async (kind: string) => {
    const button = page.getByRole("button", { name: new RegExp(`^Save “Answer to [^]*” as ${kind}$`) });
    const { name, bytes } = await downloaded(page, () => button.click());
    assert.match(name, /^conversation-[0-9a-f]{16}-1a\.(?:csv|svg)$/);
    return bytes.toString();
  };
  const csv = await kept("CSV");
  assert.match(csv, /,"'=HYPERLINK\(""https:\/\/example\.org""\)",/);
  assert.not.match(csv, /,"?=/);
  const reader = await context.newPage();
  const drawn = await reader.evaluate(
    (text) => {
      // biome-ignore lint/suspicious/noExplicitAny: a global of the page
      const parsed = new (globalThis as any).DOMParser().parseFromString(text, "image/svg+xml");
      return [...parsed.querySelectorAll("*")].map(({ localName }: { localName: string }) => localName);
    },
    await kept("SVG"),
  );
  assert.equal(
    drawn.filter((name: string) => !["svg", "title", "rect", "path", "text"].includes(name)),
    [],
  );
  assert.ok(drawn.includes("text"));
  await reader.close();
  for (const view of ["Jobs", "Inspect", "Steer", "Probe", "Patch"]) {
    await page.getByRole("link", { name: view, exact: true }).first().click();
    await page.getByRole("heading", { level: 1, name: view }).waitFor();
  }
  await page.goto(`${bench.workbench.url}/jobs/${jobId}`);
  await page.getByRole("figure", { name: "Logit lens" }).locator("svg").last().waitFor();
  assert.is(await page.evaluate("window.broken"), undefined);
  const foreign =
    "#app img, #app iframe, #app script, #app object, #app embed, #app form[action], #app a[href^='javascript:']";
  assert.is(await page.locator(foreign).count(), 0);
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("an answer is read as Markdown without HTML, pictures or links; tokens open", async () => {
  const { page, context, troubles } = await visit(bench);
  behaviour.tokens = [
    "## To",
    "kyo &",
    "amp; more\n\n- **bo",
    "ld** and `<b>`\n- ![pic](http://evil.example/p.png)\n\n",
    "[click](javascript:window.broken=1) [home](https://example.org/\u202etxt)\n\n",
    "<img src=x onerror=window.broken=1><script>window.broken=1</script>\n\n",
    "```html\n<script>window.broken=1</script>\n```\n",
    "\n| a | b |\n| - | - |\n| 1 | <i>2</i> |\n",
  ];
  await ask(page, "Markdown");
  const box = page.locator(".answer-text .markdown");
  await box.waitFor();
  assert.equal(await box.locator(".heading.h2").allTextContents(), ["Tokyo & more"]);
  assert.equal(await box.locator("li").allTextContents(), [
    "bold and <b>",
    "pic ‹http://evil.example/p.png›",
  ]);
  assert.equal(await box.locator("strong").allTextContents(), ["bold"]);
  assert.equal(await box.locator("pre code").allTextContents(), ["<script>window.broken=1</script>"]);
  assert.equal(await box.locator("td").allTextContents(), ["1", "<i>2</i>"]);
  const text = (await box.textContent()) ?? "";
  assert.match(text, /click ‹javascript:window\.broken=1› home ‹https:\/\/example\.org\/<202E>txt›/);
  assert.match(text, /<img src=x onerror=window\.broken=1><script>window\.broken=1<\/script>/);
  assert.is(
    await page.locator("#app :is(img, script, iframe, .markdown a, .markdown b, .markdown i)").count(),
    0,
  );
  assert.is(await page.evaluate("window.broken"), undefined);
  // Each piece of a word knows its token; pieces of markup alone belong to none.
  const tokenOf = (said: string) => box.locator(".t", { hasText: said }).first().getAttribute("data-at");
  assert.equal(
    [await tokenOf("To"), await tokenOf("kyo"), await tokenOf("ld"), await tokenOf("home")],
    ["0", "1", "3", "4"],
  );
  await box.locator(".t", { hasText: "ld" }).first().click();
  await page.getByRole("region", { name: "Inside a token" }).getByText("Token 3 ·").waitFor();
  await page.getByRole("checkbox", { name: "Markdown" }).uncheck();
  await until(async () => (await box.count()) === 0);
  assert.equal(await page.locator(".answer-text .t").allTextContents(), behaviour.tokens);
  behaviour.tokens = hostile;
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("a lost service is reported and resumes; a broken answer keeps its text", async () => {
  const { page, context } = await visit(bench);
  behaviour.gone = true;
  const strip = page.locator(".strip");
  await until(async () => /Server: .*broke.*Lab: .*broke/.test((await strip.textContent()) ?? ""));
  behaviour.gone = false;
  await until(async () => !/Server:|Lab:/.test((await strip.textContent()) ?? ""));
  behaviour.breaksAfter = 2;
  await ask(page, "Hello");
  await page
    .locator(".answer")
    .getByText(/^The connection to|^The answer ended before/)
    .waitFor();
  assert.equal(await page.locator(".answer-text .t").allTextContents(), hostile.slice(0, 2));
  behaviour.breaksAfter = Number.POSITIVE_INFINITY;
  await ask(page, "Again");
  await page.getByText(`${hostile.length} tokens`, { exact: true }).waitFor();
  await context.close();
});

test("the command joins running services, prints links, and ends its own ones", async () => {
  const home = mkdtempSync(join(tmpdir(), "tapline-workbench-command-"));
  const services = await scripted(answer);
  const before = process.env.TAPLINE_HOME;
  process.env.TAPLINE_HOME = home;
  const { write } = process.stdout;
  let printed = "";
  process.stdout.write = ((text: string) => {
    printed += text;
    return true;
  }) as typeof write;
  try {
    const { signal } = new AbortController();
    const options = { model: undefined, port: 0, open: false, signal };
    const bench = await openWorkbench({ ...options, url: services.url, lab: services.url });
    const [, port] = /ready at http:\/\/127\.0\.0\.1:(\d+)\n/.exec(printed) ?? [];
    assert.match(printed, new RegExp(`\\n {2}http://127\\.0\\.0\\.1:${port}/#[\\w-]{43}\\n`));
    const link = await newLink(Number(port));
    assert.match(link, new RegExp(`^http://127\\.0\\.0\\.1:${port}/#[\\w-]{43}$`));
    assert.not(printed.includes(link.split("#")[1] as string));
    await bench.close();
    await newLink(Number(port)).then(
      () => assert.unreachable(),
      (error: Error) => assert.match(error.message, /^You have no workbench running at port/),
    );
    assert.is((await fetch(`${services.url}/lab/capabilities`)).status, 200, "the former service continues");
  } finally {
    process.stdout.write = write;
    if (before === undefined) delete process.env.TAPLINE_HOME;
    else process.env.TAPLINE_HOME = before;
    await services.close();
    rmSync(home, { recursive: true, force: true });
  }
});

test.run();
