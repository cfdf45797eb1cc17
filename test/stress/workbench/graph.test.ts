/** A graph's job in the workbench: pointing, moving and pinning show a node's strongest parents and children. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { GraphResult, Job } from "../../../src/contracts/index.js";
import { nodeName } from "../../../src/findings/graph.js";
import { aroundBrowser, assertLooksWell, inBrowser } from "../../support/browser.js";
import { send } from "../../support/request.js";
import { until } from "../../support/until.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";

let bench: Bench;
let job: Job;
let result: GraphResult;
aroundBrowser({
  async start() {
    bench = await startBench();
    const body = {
      operation: "graph",
      model: "demo",
      prompt: "The capital of France is",
      nodes: 60,
      measured: 4,
    };
    const jobs = `${bench.lab}/lab/v1/jobs`;
    job = (await send(jobs, "POST", body)).body;
    await until(async () => {
      job = (await send(`${jobs}/${job.id}`, "GET")).body;
      return job.ended !== null;
    }, "the graph's job ends");
    result = job.result as GraphResult;
  },
  end: () => bench?.close(),
});

/** What an edge list says, by hand from the result. */
const listed = (end: "source" | "target", index: number) =>
  result.edges
    .filter((edge) => edge[end === "source" ? "target" : "source"] === index)
    .sort((a, b) => b.influence - a.influence)
    .slice(0, 6)
    .map((edge) => nodeName(result, result.nodes[edge[end]]!));

for (const width of [1440, 390]) {
  inBrowser(`a node shows its parents and children, and stays when pinned, ${width} px wide`, async () => {
    const { page, context, troubles } = await visit(bench, { viewport: { width, height: 900 } });
    await page.goto(`${bench.workbench.url}/jobs/${job.id}`);
    const graph = page.getByRole("region", { name: "Attribution graph" });
    const picture = graph.getByRole("application");
    await picture.waitFor();
    await graph.getByText("No node selected.").waitFor();
    const target = result.nodes.findIndex(({ kind }) => kind === "target");
    const parents = graph.locator(".graph-neighbours > div").first().locator("li");
    const texts = async () => (await parents.allTextContents()).map((text) => text.replace(/ \S+$/, ""));

    // By keyboard: the target first, and Enter pins it.
    await picture.focus();
    await graph.getByText("The logit of").waitFor();
    assert.equal(await texts(), listed("source", target));
    await picture.press("Enter");
    await graph.getByRole("button", { name: "Unpin" }).waitFor();
    await picture.press("ArrowDown");
    await graph.getByRole("button", { name: "Unpin" }).waitFor({ state: "detached" });

    // Pointing at a node shows it; leaving shows the pinned one again.
    const strongest = result.edges.find((edge) => edge.target === target)!.source;
    await picture.blur();
    await graph.getByRole("button", { name: "Unpin" }).waitFor();
    const node = picture.locator(`[data-node="${strongest}"]`);
    await node.hover();
    await until(async () => {
      const expected = listed("source", strongest);
      return JSON.stringify(await texts()) === JSON.stringify(expected);
    }, "the pointed node's parents");
    await node.click();
    await graph.getByRole("button", { name: "Unpin" }).click();
    await page.mouse.move(1, 1);
    await graph.getByText("No node selected.").waitFor();
    assert.equal(troubles, []);
    await context.close();
  });
}

inBrowser("a graph has no axe finding and fits the window, light and dark", async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    const { page, context, troubles } = await visit(bench, {
      ...{ colorScheme, viewport: { width: 390, height: 844 }, bypassCSP: true },
    });
    await page.goto(`${bench.workbench.url}/jobs/${job.id}`);
    const picture = page.getByRole("application");
    await picture.waitFor();
    await page.getByRole("figure").first().locator("svg").last().waitFor();
    await picture.focus();
    await page.locator(".graph-neighbours li").first().waitFor();
    await assertLooksWell(page, `graph, ${colorScheme}`, ["minor", "moderate", "serious", "critical"]);
    assert.equal(troubles, []);
    await context.close();
  }
});

test.run();
