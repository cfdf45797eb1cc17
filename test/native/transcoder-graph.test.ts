/** Graphs with transcoders on small models of several forms: sums, removals in the frozen model, and what is refused. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Dictionaries } from "../../src/library/index.js";
import { type Context, encodeRows, type GraphTranscoderUse } from "../../src/native/index.js";
import {
  randomTranscoder,
  writeCrossLayer,
  writeSetConfig,
  writeTranscoder,
} from "../support/random-transcoders.js";
import { rejects, scratch, someTokens } from "./demo-model.js";
import { architectures, hidden, opened, vocabulary, writeArchitecture } from "./linear-model.js";

const folder = scratch();
const tokens = someTokens(7, vocabulary);
const targets = [
  { position: 6, token: 11, minus: 200, weight: 0.75 },
  { position: 5, token: 40, weight: 0.25 },
];
const blocks = 3;

/** A set's files, by the blocks that have a transcoder. */
type WriteSet = (place: string) => ReadonlyMap<number, string>;

const perLayer: WriteSet = (place) => {
  writeSetConfig(place);
  return new Map(
    [0, 2].map((layer) => {
      writeTranscoder(
        place,
        layer,
        randomTranscoder(layer, { width: hidden, features: 60, skip: true, jump: false }),
      );
      return [layer, `layer_${layer}.safetensors`];
    }),
  );
};

const across: WriteSet = (place) => {
  writeCrossLayer(place, { width: hidden, features: 40, blocks, jump: false });
  return new Map([0, 1, 2].map((layer) => [layer, `W_enc_${layer}.safetensors`]));
};

/** Random transcoders of a model's blocks and their active features from the second token on. */
async function encoded(
  context: Context,
  name: string,
  write: WriteSet = perLayer,
): Promise<GraphTranscoderUse[]> {
  const point = context.points.ffn_in.supported ? "ffn_in" : "block_in";
  const place = join(folder, `${name}-${write === across ? "across" : "set"}`);
  mkdirSync(place, { recursive: true });
  const files = write(place);
  const dictionaries = new Dictionaries(join(place, "home"));
  const captures = [...files.keys()].map((layer) => ({ layer, point }) as const);
  const { captures: rows } = await context.forward({ sequences: [{ tokens }], captures });
  const uses: GraphTranscoderUse[] = [];
  for (const [i, [layer, file]] of [...files].entries()) {
    await dictionaries.add(`one-${layer}`, join(place, file));
    const { places } = await dictionaries.open(`one-${layer}`);
    const { pointers, indices } = await encodeRows(
      places,
      (rows[i]!.values as Float32Array).subarray(hidden),
    );
    const at = Int32Array.from(indices);
    for (let row = 0; row + 1 < pointers.length; row++) at.fill(1 + row, pointers[row], pointers[row + 1]);
    uses.push({ layer, point, dictionary: places, tokens: at, features: indices });
  }
  return uses;
}

const cases = Object.keys(architectures).flatMap((name) => [
  { name, write: perLayer, what: name },
  { name, write: across, what: `${name}, across layers` },
]);
for (const { name, write, what } of cases) {
  test(`${what}: sums close, and removals in the frozen model equal edges`, async () => {
    const path = join(folder, `${name}.gguf`);
    await writeArchitecture(path, name);
    await opened(path, async (context) => {
      const transcoders = await encoded(context, name, write);
      const request = { tokens, targets, transcoders, zeros: 1, nodes: 1000, tried: 12 };
      const precise = await context.transcoderGraph({ ...request, precise: true });
      const plain = await context.transcoderGraph(request);
      const count = plain.nodes.layers.length;
      assert.is(
        count,
        transcoders.reduce((sum, one) => sum + one.features.length, 0),
      );
      assert.ok(count > 50, `${count} nodes`);
      const { columns } = plain.edges;
      const n = tokens.length;
      assert.is(columns, n + count + 3 * blocks * n);
      let read = 0;
      for (const [found, bound] of [
        [precise, 1e-6],
        [plain, 1e-5],
      ] as const) {
        for (const residual of found.edges.residuals) assert.ok(residual < bound, `sum: ${residual}`);
        for (const [i, node] of found.tried.entries()) {
          const edges = Array.from({ length: targets.length + count }, (_, row) => [
            found.edges.parts[row * columns + n + node]!,
            found.frozen[i * (targets.length + count) + row]!,
          ]);
          const most = Math.max(...edges.map(([edge]) => Math.abs(edge!)));
          for (const [edge, lost] of edges)
            assert.ok(Math.abs(edge! - lost!) <= bound * most, `${edge}, ${lost}`);
          read += edges.filter(([edge]) => edge !== 0).length;
        }
      }
      assert.ok(read > 24, `${read} edges of removed features`);
      // The parts of a chosen half, and the sum of the others, are those of the whole graph.
      const half = await context.transcoderGraph({ ...request, nodes: 20, tried: 0 });
      const own = half.nodes.layers.length;
      assert.is(own, 20);
      const sumOf = (parts: Float32Array, from: number, to: number) =>
        parts.subarray(from, to).reduce((sum, one) => sum + one, 0);
      const all = sumOf(plain.edges.parts, n, n + count);
      const chosen = sumOf(half.edges.parts, n, n + own) + sumOf(half.edges.parts, n + own, n + own + 3 * n);
      assert.ok(Math.abs(all - chosen) < 1e-4 * Math.max(1, Math.abs(all)), `${all}, ${chosen}`);
      const bytes = await context.transcoderGraphBytes(request);
      assert.ok(bytes > 4 * plain.edges.parts.length, `${bytes} bytes`);
    });
  });
}

test("active features must be valid, and the layers ascending", async () => {
  const path = join(folder, "refused.gguf");
  await writeArchitecture(path, "qwen2");
  await opened(path, async (context) => {
    const transcoders = await encoded(context, "refused");
    const graph = (more: object) =>
      context.transcoderGraph({ ...{ tokens, targets, transcoders, zeros: 1, nodes: 10 }, ...more });
    await rejects(graph({ zeros: 3 }), "INVALID_ARGUMENT", /active features of block 0 are not valid/);
    await rejects(
      graph({ transcoders: [...transcoders].reverse() }),
      "INVALID_ARGUMENT",
      /must be of ascending layers up to 2, got 0\./,
    );
    const [first, second] = transcoders as [GraphTranscoderUse, GraphTranscoderUse];
    const far = { ...second, dictionary: { ...second.dictionary, blocks: 2 } };
    await rejects(
      graph({ transcoders: [first, far] }),
      "INVALID_ARGUMENT",
      /The transcoder of block 2 writes into 2 blocks from its own on; the model has 3 blocks\./,
    );
    await rejects(graph({ targets: [] }), "INVALID_ARGUMENT", /At least one target is needed\./);
    const signal = AbortSignal.abort();
    await rejects(graph({ signal }), "CANCELLED", /cancelled/);
  });
});

test.run();
