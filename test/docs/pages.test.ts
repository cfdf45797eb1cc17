import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ChatRequest, CompletionRequest } from "../../src/contracts/chat.js";
import { ForwardRequest } from "../../src/contracts/forward.js";
import { CaptureRequest, checkSubmission, validate } from "../../src/contracts/index.js";
import { WeightsRequest } from "../../src/contracts/weights.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Markdown of the repository: at the top, and in these folders. */
const folders = ["docs", "clients", "models", "native", "recipes", "bench", "conformance"];
const pages = [
  ...readdirSync(root),
  ...folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((name) => `${folder}/${name}`),
  ),
].filter((name) => name.endsWith(".md") && !name.includes("node_modules"));
const textOf = (page: string) => readFileSync(join(root, page), "utf8");

/** Lines outside code blocks: links in these are for readers. */
function prose(text: string): string {
  let fenced = false;
  const lines = text.split("\n").filter((line) => {
    const fence = /^\s*```/.test(line);
    if (fence) fenced = !fenced;
    return !fence && !fenced;
  });
  return lines.join("\n");
}

/** Links to places in the repository: of `[text](path#anchor)`, images, and `[name]: path`. */
function linksOf(text: string): { target: string; anchor: string | undefined }[] {
  const outside = /^(https?:|mailto:)/;
  const found = [...prose(text).matchAll(/\]\(<?([^)>\s]+)>?(?: "[^"]*")?\)|^\[[^\]]+\]: (\S+)/gm)];
  return found.flatMap(([, inline, defined]) => {
    const link = (inline ?? defined) as string;
    if (outside.test(link)) return [];
    const [target = "", anchor] = link.split("#");
    return [{ target, anchor }];
  });
}

/** The anchors of a page's headings, as GitHub and the site make them. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading] of prose(text).matchAll(/^#+ (.+)$/gm)) {
    const words = (heading as string).replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const base = words.replace(/[^\p{L}\p{N}\p{M}\p{Pc}\- ]/gu, "").replaceAll(" ", "-");
    let anchor = base;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${base}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

test("every link between pages leads to a file", () => {
  let count = 0;
  for (const page of pages) {
    for (const { target } of linksOf(textOf(page))) {
      assert.ok(existsSync(join(root, dirname(page), decodeURIComponent(target))), `${page}: ${target}`);
      count++;
    }
  }
  assert.ok(count > 600, String(count));
});

test("every anchor names a heading of its page", () => {
  const anchors = new Map<string, Set<string>>();
  let count = 0;
  for (const page of pages) {
    for (const { target, anchor } of linksOf(textOf(page))) {
      const of = target === "" ? page : join(dirname(page), target);
      if (anchor === undefined || !of.endsWith(".md")) continue;
      if (!anchors.has(of)) anchors.set(of, anchorsOf(textOf(of)));
      assert.ok(anchors.get(of)?.has(anchor), `${page}: ${target}#${anchor}`);
      count++;
    }
  }
  assert.ok(count > 400, String(count));
});

test("links and anchors are read as GitHub reads them", () => {
  const text =
    "# A `b`: c_d\n[x](y.md#z) ![p](i.png)\n```sh\n# no heading [n](none.md)\n```\n## Twice\n## Twice\n[r]: q.md";
  assert.equal([...anchorsOf(text)], ["a-b-c_d", "twice", "twice-1"]);
  assert.equal(linksOf(text), [
    { target: "y.md", anchor: "z" },
    { target: "i.png", anchor: undefined },
    { target: "q.md", anchor: undefined },
  ]);
});

test("every page of docs is reachable from the front page", () => {
  const seen = new Set<string>();
  const visit = (page: string) => {
    if (seen.has(page)) return;
    seen.add(page);
    for (const { target } of linksOf(textOf(page))) {
      const next = join(dirname(page), target);
      if (next.startsWith("docs/") && next.endsWith(".md")) visit(next);
    }
  };
  visit("docs/README.md");
  assert.equal(
    pages.filter((page) => page.startsWith("docs/") && !seen.has(page)),
    [],
  );
});

test("every body that a page sends with curl is accepted by its contract", () => {
  const checks: Record<string, (body: unknown) => unknown> = {
    "/v1/chat/completions": (body) => validate(ChatRequest, body),
    "/v1/completions": (body) => validate(CompletionRequest, body),
    "/lab/activations": (body) => validate(CaptureRequest, body),
    "/lab/forward": (body) => validate(ForwardRequest, body),
    "/lab/weights": (body) => validate(WeightsRequest, body),
    "/lab/v1/jobs": checkSubmission,
  };
  let count = 0;
  for (const page of pages) {
    for (const [, path, body] of textOf(page).matchAll(/curl -s localhost:\d+(\/\S+) -d '([^']*)'/g)) {
      const check = checks[path as string];
      assert.ok(check, `${page}: ${path}`);
      check(JSON.parse(body as string));
      count++;
    }
  }
  assert.ok(count >= 4, String(count));
});

test("the README begins with the two commands", () => {
  const commands = [...textOf("README.md").matchAll(/```sh\n([^`]*)```/g)].map(([, text]) => text?.trim());
  assert.equal(commands.slice(0, 2), ["npm ci && npx tapline demo", "npm test"]);
});

test.run();
