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
const pages = [
  "README.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).map((name) => `docs/${name}`),
].filter((name) => name.endsWith(".md"));
const textOf = (page: string) => readFileSync(join(root, page), "utf8");

test("every link between pages leads to a file", () => {
  for (const page of pages) {
    for (const [, target] of textOf(page).matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)) {
      assert.ok(existsSync(join(root, dirname(page), target as string)), `${page}: ${target}`);
    }
  }
});

test("every anchor names a heading of its page", () => {
  const anchors = (page: string) =>
    [...textOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
      (heading as string)
        .toLowerCase()
        .replace(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    );
  let count = 0;
  for (const page of pages) {
    for (const [, target = "", anchor] of textOf(page).matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)) {
      const of = target === "" ? page : join(dirname(page), target);
      assert.ok(anchors(of).includes(anchor as string), `${page}: ${target}#${anchor}`);
      count++;
    }
  }
  assert.ok(count > 20, String(count));
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
