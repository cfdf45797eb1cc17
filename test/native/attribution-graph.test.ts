/** Graphs of neurons and heads against the same linear model computed upwards, from each node to the others, in float64. */
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { AttributionGraph } from "../../src/native/index.js";
import { demo, rejects, scratch, someTokens } from "./demo-model.js";
import {
  architectures,
  blocks,
  dot,
  headWidth,
  hidden,
  LinearModel,
  logitReading,
  neuronCount,
  opened,
  type Rows,
  vocabulary,
  writeArchitecture,
} from "./linear-model.js";

const folder = scratch();
const tokens = someTokens(7, vocabulary);
const [position, token, minus] = [6, 11, 200];
const targets = [
  { position, token, minus, weight: 0.75 },
  { position: 5, token: 40, weight: 0.25 },
];

interface Node {
  head: boolean;
  layer: number;
  token: number;
  index: number;
}

const nodesOf = ({ nodes }: AttributionGraph): Node[] =>
  Array.from(nodes.layers, (layer, i) => ({
    head: nodes.heads[i] === 1,
    layer,
    token: nodes.tokens[i]!,
    index: nodes.indices[i]!,
  }));

const unit = (count: number, at: number) =>
  Float64Array.from({ length: count }, (_, k) => (k === at ? 1 : 0));

/** The direction in which a head's output affects the weighted targets, through everything above it. */
function directionOf(name: string, linear: LinearModel, { layer, token: at, index }: Node): Float64Array {
  const readings = targets.map((target) => logitReading(name, linear, target));
  return Float64Array.from({ length: headWidth }, (_, k) => {
    const written = linear.write(layer, at, unit(hidden, index * headWidth + k), false);
    const top = linear.up(linear.after(layer, linear.only(at, written), true), layer + 1, blocks, true);
    return readings.reduce(
      (sum, reading, i) => sum + targets[i]!.weight * dot(reading.direction, top[reading.position]!),
      0,
    );
  });
}

/** What each row of the matrix gets directly from a change of the stream at the input or the middle of a block. */
function received(
  name: string,
  linear: LinearModel,
  nodes: Node[],
  directions: (Float64Array | undefined)[],
  from: { rows: Rows; block: number; middle?: boolean },
): Float64Array {
  const { parallel } = architectures[name]!;
  const found = new Float64Array(targets.length + nodes.length);
  const isNode = (block: number) => (head: number, at: number) =>
    nodes.some((one) => one.head && one.layer === block && one.index === head && one.token === at);
  let { rows } = from;
  for (let block = from.block; block < blocks; block++) {
    const middle = from.middle === true && block === from.block;
    const own = nodes
      .map((node, i) => ({ node, at: targets.length + i }))
      .filter(({ node }) => node.layer === block);
    const outputs = middle ? undefined : linear.mixed(block, rows);
    const above = middle ? rows : linear.through(block, rows, false, (head, at) => !isNode(block)(head, at));
    // A parallel block's MLP reads what its attention reads.
    const read = parallel ? (middle ? linear.nothing() : rows) : above;
    for (const { node, at } of own) {
      if (node.head) {
        const part = outputs?.[node.token]?.slice(node.index * headWidth, (node.index + 1) * headWidth);
        found[at] = part === undefined ? 0 : dot(directions[at - targets.length]!, part);
      } else {
        found[at] = linear.change(block, node.token, read[node.token]!)[node.index]!;
      }
    }
    rows = above;
  }
  for (const [i, target] of targets.entries()) {
    const { direction, position: at } = logitReading(name, linear, target);
    found[i] = dot(direction, rows[at]!);
  }
  return found;
}

for (const name of Object.keys(architectures)) {
  test(`${name}: each edge is what one node adds to another in the linear model`, async () => {
    const path = join(folder, `${name}.gguf`);
    await writeArchitecture(path, name);
    await opened(path, async (context) => {
      const linear = await LinearModel.of(name, context, tokens);
      const request = { tokens, targets, nodes: 40, tried: 10 };
      const precise = await context.attributionGraph({ ...request, precise: true });
      const nodes = nodesOf(precise);
      assert.is(nodes.length, 40);
      assert.ok(nodes.filter(({ head }) => head).length > 5, "heads");
      assert.ok(nodes.filter(({ head }) => !head).length > 5, "neurons");
      const directions = nodes.map((node) => (node.head ? directionOf(name, linear, node) : undefined));
      const n = tokens.length;
      const neuronsAt = (layer: number, at: number) =>
        nodes.filter((one) => !one.head && one.layer === layer && one.token === at);
      const columns = [
        ...Array.from(tokens.keys(), (at) => ({ rows: linear.only(at, linear.input[0]![at]!), block: 0 })),
        ...nodes.map(({ head, layer, token: at, index }) =>
          head
            ? {
                rows: linear.only(at, linear.write(layer, at, linear.head(layer, index, at), false)),
                block: layer,
                middle: true,
              }
            : {
                rows: linear.only(
                  at,
                  linear.writeNeurons(
                    layer,
                    at,
                    linear.neurons(layer, at).values.map((value, k) => (k === index ? value : 0)),
                    false,
                  ),
                ),
                block: layer + 1,
              },
        ),
        ...Array.from({ length: blocks * n }, (_, i) => {
          const [layer, at] = [Math.floor(i / n), i % n];
          const kept = new Set(neuronsAt(layer, at).map(({ index }) => index));
          const rest = linear.neurons(layer, at).values.map((value, k) => (kept.has(k) ? 0 : value));
          return { rows: linear.only(at, linear.writeNeurons(layer, at, rest, false)), block: layer + 1 };
        }),
      ].map((from) => received(name, linear, nodes, directions, from));
      assert.is(precise.edges.columns, columns.length + blocks * n);
      const values = [
        ...targets.map((target) => {
          const { direction, position: at, constant } = logitReading(name, linear, target);
          return dot(direction, linear.last[at]!) + constant;
        }),
        ...nodes.map(({ head, layer, token: at, index }, i) =>
          head
            ? dot(directions[i]!, linear.heads[layer]![at]!.slice(index * headWidth, (index + 1) * headWidth))
            : linear.neurons(layer, at).values[index]!,
        ),
      ];
      const plain = await context.attributionGraph(request);
      for (const [found, bound] of [
        [precise, 1e-6],
        [plain, 1e-4],
      ] as const) {
        assert.equal(nodesOf(found), nodes);
        for (const [row, value] of values.entries()) {
          const wanted = columns.map((column) => column[row]!);
          const largest = Math.max(Math.abs(value), ...wanted.map(Math.abs));
          const { parts, columns: wide } = found.edges;
          for (const [column, part] of wanted.entries()) {
            const off = Math.abs(parts[row * wide + column]! - part);
            assert.ok(
              off <= bound * Math.abs(part) + bound * 1e-2 * largest,
              `${name}, row ${row}, column ${column}: ${parts[row * wide + column]}, ${part}`,
            );
          }
          assert.ok(Math.abs(found.edges.values[row]! - value) <= bound * largest, `${name}, value ${row}`);
          const constant = value - wanted.reduce((sum, part) => sum + part, 0);
          assert.ok(Math.abs(found.edges.constants[row]! - constant) <= 1e-4 * largest, `constant ${row}`);
          assert.ok(found.edges.residuals[row]! < 2e-6, `${name}, sum ${row}: ${found.edges.residuals[row]}`);
        }
      }
    });
  });
}

for (const name of Object.keys(architectures)) {
  test(`${name}: nodes are the strongest of an attribution`, async () => {
    const path = join(folder, `${name}-nodes.gguf`);
    await writeArchitecture(path, name);
    await opened(path, async (context) => {
      const linear = await LinearModel.of(name, context, tokens);
      const all = blocks * tokens.length * neuronCount;
      const attributed = await context.attribution({ tokens, targets, neurons: all, precise: true });
      const keyOf = ({ head, layer, token: at, index }: Node) =>
        `${head ? "head" : "neuron"} ${layer} ${at} ${index}`;
      const relevances = new Map<string, number[]>();
      for (const [i, { neurons, heads }] of attributed.targets.entries()) {
        const add = (node: Node, value: number) => {
          const key = keyOf(node);
          relevances.set(key, Object.assign(relevances.get(key) ?? [0, 0], { [i]: value }));
        };
        for (const [k, value] of neurons.values.entries())
          add(
            { head: false, layer: neurons.layers[k]!, token: neurons.tokens[k]!, index: neurons.neurons[k]! },
            value,
          );
        for (const [layer, values] of heads.entries())
          for (const [k, value] of values.entries())
            add({ head: true, layer, token: k % tokens.length, index: Math.floor(k / tokens.length) }, value);
      }
      const influence = (values: number[]) =>
        values.reduce((sum, value, i) => sum + Math.abs(value) * targets[i]!.weight, 0);
      const wanted = [...relevances].sort(([, a], [, b]) => influence(b) - influence(a)).slice(0, 25);
      const found = await context.attributionGraph({ tokens, targets, nodes: 25, tried: 8, precise: true });
      const keys = nodesOf(found).map(keyOf);
      assert.equal([...keys].sort(), wanted.map(([key]) => key).sort());
      for (const [i, key] of keys.entries()) {
        for (const [target, value] of relevances.get(key)!.entries()) {
          const mine = found.nodes.relevances[i * targets.length + target]!;
          assert.ok(Math.abs(mine - value) <= 1e-9 * Math.abs(value) + 1e-15, `${key}: ${mine}, ${value}`);
        }
      }
      const first = [...keys].sort(
        (a, b) => Math.abs(relevances.get(b)![0]!) - Math.abs(relevances.get(a)![0]!),
      );
      assert.equal(
        Array.from(found.tried, (i) => keys[i]),
        first.slice(0, 8),
      );
      for (const [k, i] of found.tried.entries()) {
        const node = nodesOf(found)[i]!;
        if (node.head) {
          assert.is(found.losses[k]!.length, 0);
          continue;
        }
        const loss = linear.loss(node.layer, node.token, node.index);
        const size = Math.sqrt(dot(loss, loss));
        const off = Math.hypot(...loss.map((value, at) => value - found.losses[k]![at]!));
        assert.ok(size > 0 && off < 1e-6 * size, `${keys[i]}: ${off} of ${size}`);
      }
      for (const [i, parts] of attributed.targets.entries()) {
        assert.equal(found.embeddings[i], parts.embeddings);
        const rounding = [...parts.rounding, ...parts.ffnRounding].reduce((sum, value) => sum + value, 0);
        assert.ok(Math.abs(found.rounding[i]! - rounding) < 1e-12);
      }
    });
  });
}

test("a graph of many nodes is computed in batches with the same edges", async () => {
  await opened(demo, async (context) => {
    const text = someTokens(40, 300);
    const last = { position: 39, token: 7 };
    const request = { tokens: text, targets: [last], tried: 0 };
    const [few, many] = [
      await context.attributionGraph({ ...request, nodes: 8 }),
      await context.attributionGraph({ ...request, nodes: 400 }),
    ];
    assert.ok(Math.max(...many.edges.residuals) < many.residualBound);
    const places = nodesOf(few).map((node) =>
      nodesOf(many).findIndex((other) => JSON.stringify(other) === JSON.stringify(node)),
    );
    assert.ok(places.every((place) => place >= 0));
    // Edges between two nodes differ only by what passes through heads that became nodes: never for the embedding of a head's own block.
    for (const [i, place] of places.entries())
      assert.ok(
        Math.abs(few.edges.values[1 + i]! - many.edges.values[1 + place]!) <=
          1e-5 * Math.abs(few.edges.values[1 + i]!),
      );
  });
});

test("reports the memory before it computes, and more for more nodes", async () => {
  await opened(demo, async (context) => {
    const request = { tokens: someTokens(12, 300), targets: [{ position: 11, token: 5 }] };
    const [few, many] = [
      await context.attributionGraphBytes({ ...request, nodes: 10 }),
      await context.attributionGraphBytes({ ...request, nodes: 1000 }),
    ];
    assert.ok(few > 1e6 && many > few + 4e6, `${few}, ${many}`);
    assert.is((await context.attributionGraph({ ...request, nodes: 10 })).bytes, few);
    await rejects(
      context.attributionGraph({ ...request, nodes: 100_000 }),
      "INVALID_ARGUMENT",
      /would need \d+ MiB, at most 4096; choose fewer nodes/,
    );
  });
});

test("refuses targets and texts that do not exist", async () => {
  await opened(demo, async (context) => {
    const text = someTokens(5, 300);
    const graph = (targets: { position: number; token: number }[], given = text) =>
      context.attributionGraph({ tokens: given, targets, nodes: 5 });
    await rejects(graph([{ position: 5, token: 1 }]), "INVALID_ARGUMENT", /position must be 0 to 4, got 5/);
    await rejects(graph([]), "INVALID_ARGUMENT", /At least one target/);
    await rejects(graph([{ position: 0, token: 1e6 }]), "INVALID_ARGUMENT");
    await rejects(
      graph([{ position: 0, token: 1 }], someTokens(65, 300)),
      "TOKEN_LIMIT",
      /at most 64 tokens, got 65/,
    );
  });
});

test("a cancelled graph ends", async () => {
  await opened(demo, async (context) => {
    const cancel = new AbortController();
    const request = { tokens: someTokens(40, 300), targets: [{ position: 39, token: 7 }], nodes: 2000 };
    const began = context.attributionGraph({ ...request, signal: cancel.signal });
    cancel.abort();
    await rejects(began, "CANCELLED");
  });
});

test.run();
