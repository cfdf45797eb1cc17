/**
 * Published contracts are not narrowed: every bound, every field and every status of the schemas and of the OpenAPI
 * documents, as they were recorded and read against the specification. Additions are allowed.
 * `TAPLINE_RECORD=1 npm test -- contracts/published` records them again, for an intended change, or to protect additions; read
 * the difference. Lines are sorted by name, so that it shows changes alone.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { contracts as contractsOf, operations } from "../../src/contracts/index.js";
import { servingDocument } from "../../src/inference/endpoints.js";
import { openApiDocument } from "../../src/lab/endpoints.js";
import { openApi } from "../../src/studies/api/endpoints.js";

const recorded = fileURLToPath(new URL("./fixtures/published.txt", import.meta.url));
const contracts = fileURLToPath(new URL("../../src/contracts", import.meta.url));

type Published = Map<string, unknown>;

/** A value without texts for people; schemas that have a title are kept once, under it. */
function bare(value: unknown, all: Published): unknown {
  if (Array.isArray(value)) return value.map((item) => bare(item, all));
  if (typeof value !== "object" || value === null) return value;
  const { title, description: _description, summary: _summary, ...rest } = value as Record<string, unknown>;
  if (typeof title !== "string") return bareFields(value, all);
  if (!all.has(title)) {
    all.set(title, undefined); // it may stand within itself
    all.set(title, bareFields(rest, all));
  }
  return `the schema ${title}`;
}

function bareFields(value: object, all: Published): object {
  const kept = Object.entries(value).filter(
    ([name, item]) =>
      typeof item !== "function" && !(["description", "summary"].includes(name) && typeof item === "string"),
  );
  return Object.fromEntries(kept.map(([name, item]) => [name, bare(item, all)]));
}

async function published(): Promise<Published> {
  const all: Published = new Map();
  const documents = [
    openApiDocument("http://localhost:8980"),
    servingDocument("http://localhost:8971"),
    openApi("https://studies.example"),
  ] as { paths: Record<string, object>; components: { schemas: Record<string, object> } }[];
  for (const { paths } of documents) {
    for (const [path, methods] of Object.entries(paths)) all.set(path, bare(methods, all));
  }
  const files = readdirSync(contracts, { recursive: true, encoding: "utf8" }).map((file) =>
    join(contracts, file),
  );
  files.push(join(contracts, "../operations/contracts.ts"), join(contracts, "../text/hidden.ts"));
  for (const operation of operations) files.push(join(contracts, "../operations", operation, "contract.ts"));
  for (const file of files.filter((name) => name.endsWith(".ts") && !name.endsWith("index.ts")).sort()) {
    const exported = (await import(pathToFileURL(file).href)) as Record<string, unknown>;
    for (const [name, value] of Object.entries(exported)) {
      if (typeof value === "function" || value instanceof RegExp || name === "default") continue;
      if (typeof value === "string" && value.includes(" ")) continue; // a text for people
      const item = bare(value, all);
      // The file that defines something does not matter, but two may have the same name.
      const key = `export ${name}`;
      const same = !all.has(key) || JSON.stringify(all.get(key)) === JSON.stringify(item);
      all.set(same ? key : `${key} of ${relative(contracts, file).replaceAll("\\", "/")}`, item);
    }
  }
  const table = (part: "submission" | "result") =>
    Object.fromEntries(operations.map((name) => [name, bare(contractsOf[name][part], all)]));
  all.set("results", table("result")).set("submissions", table("submission"));
  return all;
}

/** What of `then` is not so in `now`, as places. Words of a list may be more. */
function* broken(then: unknown, now: unknown, place: string): Generator<string> {
  if (Array.isArray(then) && then.every((item) => typeof item !== "object")) {
    const known = Array.isArray(now) ? now : [];
    for (const item of then) if (!known.includes(item)) yield `${place} lacks ${JSON.stringify(item)}`;
  } else if (typeof then === "object" && then !== null) {
    for (const [name, item] of Object.entries(then)) {
      yield* broken(item, (now as Record<string, unknown> | undefined)?.[name], `${place}.${name}`);
    }
  } else if (then !== now) {
    yield `${place} was ${JSON.stringify(then)} and is ${JSON.stringify(now)}`;
  }
}

test("no bound, field or status that was published has changed", async () => {
  const now = await published();
  const line = ([name, value]: [string, unknown]) => `${name}\t${JSON.stringify(value)}\n`;
  const sorted = [...now].sort(([a], [b]) => (a < b ? -1 : 1));
  if (process.env.TAPLINE_RECORD === "1") writeFileSync(recorded, sorted.map(line).join(""));
  const then = readFileSync(recorded, "utf8").trimEnd().split("\n");
  assert.ok(then.length > 300);
  const changed = then.flatMap((each) => {
    const [name, value] = each.split("\t") as [string, string];
    return [...broken(JSON.parse(value), now.get(name), name)];
  });
  assert.equal(changed, []);
});

test.run();
