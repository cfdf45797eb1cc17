/**
 * How a graph of 1,000 nodes and 10,000 edges moves in the workbench, in Chromium: `npm run verify:graph-page`. The pointer sweeps
 * over nodes; the figures are frames, and the main thread's own time for each step, which other programs on the machine do not
 * change.
 */
import type { CDPSession, Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { GraphEdge, GraphNode } from "../../src/contracts/index.js";
import { circuitTracerGraph } from "../../src/operations/graph/run-circuit-tracer.js";
import { aroundBrowser, inBrowser } from "../support/browser.js";
import { graphNode, graphTarget } from "../support/graph-nodes.js";
import { TestRandom } from "../support/random.js";
import { type Bench, startBench, visit } from "../workbench/bench.js";
import { holds, printFigure } from "./figures.js";
import type { Figure } from "./numerics/check.js";

const [nodeCount, edgeCount, blocks, tokens] = [1000, 10_000, 26, 24];
const steps = 120;
const frame = 1000 / 60;

/** A random graph in circuit-tracer's JSON. */
function randomGraph(): string {
  const random = new TestRandom(1);
  const below = (most: number) => Math.floor(random.uniform() * most);
  const nodes: GraphNode[] = Array.from({ length: nodeCount }, (_, at) =>
    graphNode(at % 9 === 0 ? "error" : "feature", below(blocks), 1 + below(tokens - 1), at, random.uniform()),
  ).sort((a, b) => (a.layer ?? 0) - (b.layer ?? 0));
  nodes.push(graphNode("target", null, tokens - 1, 0));
  const seen = new Set<string>();
  const edges: GraphEdge[] = [];
  while (edges.length < edgeCount) {
    const [source, target] = [below(nodeCount), below(nodeCount + 1)];
    const upwards = target === nodeCount || (nodes[source]?.layer ?? 0) < (nodes[target]?.layer ?? 0);
    if (!upwards || seen.has(`${source} ${target}`)) continue;
    seen.add(`${source} ${target}`);
    edges.push({ source, target, value: random.uniform() - 0.4, influence: 0 });
  }
  const graph = {
    ...{ blocks, nodes, targets: [graphTarget(1, " x", 1)] },
    ...{
      tokens: Array.from({ length: tokens }, (_, at) => ` t${at}`),
      token_ids: Array.from({ length: tokens }, (_, at) => at),
    },
  };
  return JSON.stringify(
    circuitTracerGraph(
      graph,
      edges,
      nodes.map(() => null),
      { prompt: "random", node_threshold: 0.8 },
    ),
  );
}

let bench: Bench;
aroundBrowser({
  async start() {
    bench = await startBench();
  },
  end: () => bench?.close(),
});

inBrowser("a graph of 1,000 nodes and 10,000 edges follows the pointer", async () => {
  const { page, context } = await visit(bench, { viewport: { width: 1440, height: 900 } });
  await page.goto(`${bench.workbench.url}/graph`);
  const cdp = await context.newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  const before = await busy(cdp);
  await page
    .getByLabel("Graph file")
    .setInputFiles({ name: "big.json", mimeType: "application/json", buffer: Buffer.from(randomGraph()) });
  await page.getByRole("application").waitFor();
  assert.is(await page.locator("[data-node]").count(), nodeCount + 1);
  assert.is(await page.locator(".edges path").count(), edgeCount);
  console.log(`opening: ${((await busy(cdp)) - before).toFixed(0)} ms of the main thread`);
  const { each, frames } = await sweep(page, cdp);
  const step: Figure = { what: "ms of the main thread per step of the pointer", value: each, bound: frame };
  printFigure(step);
  console.log(
    `frames, ms: median ${quantile(frames, 0.5)}, p95 ${quantile(frames, 0.95)}, worst ${quantile(frames, 1)}`,
  );
  assert.ok(holds(step));
  await context.close();
});

/** Moves the pointer from node to node, one per frame. */
async function sweep(page: Page, cdp: CDPSession): Promise<{ each: number; frames: number[] }> {
  const before = await busy(cdp);
  const frames = (await page.evaluate(`(async () => {
    const nodes = [...document.querySelectorAll("[data-node] .area")];
    const next = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const times = [await next()];
    for (let step = 0; step < ${steps}; step++) {
      nodes[(step * 37) % nodes.length].dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
      times.push(await next());
    }
    return times.slice(1).map((time, at) => time - times[at]);
  })()`)) as number[];
  return { each: ((await busy(cdp)) - before) / steps, frames };
}

/** The main thread's time in tasks so far, in milliseconds. */
async function busy(cdp: CDPSession): Promise<number> {
  const { metrics } = await cdp.send("Performance.getMetrics");
  return 1000 * (metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0);
}

function quantile(values: readonly number[], share: number): string {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0).toFixed(1);
}

test.run();
