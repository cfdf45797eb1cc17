/** Attribution graphs on pretend GPUs, whole and in part, against the processor's. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { addSet, Dictionaries, setAt } from "../../src/library/index.js";
import { onPretendGpu } from "../support/pretend-gpu/index.js";
import { randomTranscoder, writeSetConfig, writeTranscoder } from "../support/random-transcoders.js";
import type { GraphsOnDevices } from "./fixtures/graph.js";

const fixture = new URL("./fixtures/graph.ts", import.meta.url);
const folder = mkdtempSync(join(tmpdir(), "tapline-graph-devices-"));
const home = join(folder, "home");
const graphs = async (spec: string, gpuLayers: number) =>
  (await onPretendGpu<GraphsOnDevices>(spec, fixture, { gpuLayers, home })).output;
let expected: GraphsOnDevices;
test.before(async () => {
  const set = join(folder, "set");
  mkdirSync(set);
  writeSetConfig(set);
  for (const layer of [0, 2, 5, 7])
    writeTranscoder(set, layer, randomTranscoder(layer, { width: 128, features: 200, skip: layer === 2 }));
  await addSet(new Dictionaries(home), "set", set, (await setAt(set, undefined))!);
  expected = await graphs("1x1024", 0);
});
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** Everything that is a number, in order. */
const numbersOf = (value: unknown): number[] =>
  typeof value === "number"
    ? [value]
    : typeof value === "object" && value !== null
      ? Object.values(value).flatMap(numbersOf)
      : [];

for (const [spec, gpuLayers, where] of [
  ["1x1024", 9, "Pretend0 8"],
  ["1x1024", 4, "CPU 5, Pretend0 3"],
  ["2x1024", 9, "Pretend0 5, Pretend1 3"],
] as const) {
  test(`a graph's nodes and edges are the processor's: ${where}`, async () => {
    const found = await graphs(spec, gpuLayers);
    assert.is(found.devices, where);
    for (const [i, { nodes, edges, closing, ...rest }] of found.graphs.entries()) {
      const own = expected.graphs[i]!;
      const places = (list: typeof nodes) =>
        list.map(({ kind, layer, position, index }) => [kind, layer, position, index]);
      assert.equal(places(nodes), places(own.nodes));
      const byEnds = (list: typeof edges) =>
        new Map(list.map(({ source, target, value }) => [`${source} ${target}`, value]));
      const values = byEnds(own.edges);
      assert.is(edges.length, own.edges.length);
      const most = Math.max(...own.edges.map(({ value }) => Math.abs(value)));
      for (const [ends, value] of byEnds(edges))
        assert.ok(Math.abs(value - values.get(ends)!) < 1e-4 * most, `edge ${ends}: ${value}`);
      const [a, b] = [numbersOf(rest), numbersOf({ ...own, nodes: [], edges: [], closing: [] })];
      assert.is(a.length, b.length);
      for (const [at, value] of a.entries())
        assert.ok(
          Math.abs(value - b[at]!) < 1e-3 * Math.max(1, Math.abs(b[at]!)),
          `${at}: ${value}, ${b[at]}`,
        );
      assert.ok(closing.worst < 1e-3, `${closing.worst}`);
    }
  });
}

test.run();
