/** An experiment is its own files in three folders, and what all of them share: none of them knows another one. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, extname } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";

const root = new URL("../../", import.meta.url);
const native = "native/experiment/";
const napi = "native/napi/experiments/";
const typescript = "src/native/experiments/";
/** What every experiment may use, by folder. */
const shared = {
  [native]: ["passes", "checks", "token_batch", "next_token", "tail_pass", "graph_points"],
  [napi]: ["experiment"],
  [typescript]: ["experiment"],
};
/** Further files of an experiment, which no other one may use. */
const parts: Readonly<Record<string, string>> = { forward_results: "forward" };
const ownerOf = (name: string) => parts[name] ?? name;
/** A pass reads the first two along with block outputs; the last one reads everything that is linear in it. */
const readers = ["attention", "routing", "frozen_pass", "frozen-pass"];
const usesReaders = [
  ...[
    "advance",
    "attribution",
    "attribution_graph",
    "forward",
    "frozen_pass",
    "graph_targets",
    "transcoder_graph",
  ],
];
/** What graphs share with each other, on either side of the boundary. */
const ofGraphs = ["graph_targets", "graph"];
const graphs = ["attribution_graph", "transcoder_graph", ...ofGraphs];

/** Each file's name without its extension, and the names that it includes or imports from `pattern`. */
function uses(folder: string, pattern: RegExp): [name: string, used: string[]][] {
  return readdirSync(new URL(folder, root)).map((file) => {
    const text = readFileSync(new URL(folder + file, root), "utf8");
    const used = [...text.matchAll(pattern)].map(([, name]) => name as string);
    return [basename(file, extname(file)), used.filter((name) => name !== basename(file, extname(file)))];
  });
}

test("experiments use shared code, and no other experiment", () => {
  for (const [folder, pattern] of [
    [native, /#include "experiment\/(\w+)\.h"/g],
    [napi, /#include "napi\/experiments\/(\w+)\.h"/g],
    [typescript, /from "\.\/([\w-]+)\.js"/g],
  ] as const) {
    const files = uses(folder, pattern);
    assert.ok(files.length > 5, folder);
    for (const [name, used] of files) {
      const allowed: string[] = [
        ...shared[folder],
        ...(usesReaders.includes(ownerOf(name).replaceAll("-", "_")) ? readers : []),
        ...(graphs.includes(name) ? ofGraphs : []),
      ];
      assert.equal(
        used.filter((one) => ownerOf(one) !== ownerOf(name) && !allowed.includes(one)),
        [],
        folder + name,
      );
    }
  }
});

test("shared code knows no experiment", () => {
  for (const [name, used] of uses(native, /#include "experiment\/(\w+)\.h"/g)) {
    if (!shared[native].includes(name)) continue;
    assert.equal(
      used.filter((one) => !shared[native].includes(one)),
      [],
      name,
    );
  }
  for (const folder of [napi, typescript]) {
    for (const [name, used] of uses(folder, /["/]experiments?\/(\w+)\.(?:h|js)"/g)) {
      if (name === "experiment") assert.equal(used, folder === napi ? ["passes"] : [], folder);
    }
  }
});

test("each experiment has its own files on all three sides of the boundary", () => {
  const names = (folder: string, besides: string[]) =>
    [...new Set(uses(folder, /$^/g).map(([name]) => name.replace("-", "_")))]
      .filter((name) => !besides.includes(name))
      .sort();
  const expected = names(native, [...shared[native], ...readers, ...ofGraphs, ...Object.keys(parts)]);
  assert.equal(names(napi, [...shared[napi], ...ofGraphs]), expected);
  assert.equal(names(typescript, [...shared[typescript], ...readers]), expected);
  for (const [name, used] of uses(napi, /#include "experiment\/(\w+)\.h"/g)) {
    if (name !== "experiment") assert.equal(used, name === "graph" ? ["graph_targets"] : [], name);
  }
});

test.run();
