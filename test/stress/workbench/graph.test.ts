/**
 * Graphs in the workbench: the form and its job; pointing, moving and pinning show a node's strongest parents and children; its
 * files; heads that are ablated in the chat.
 */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { GraphResult, Job } from "../../../src/contracts/index.js";
import { nodeName } from "../../../src/findings/graph.js";
import { aroundBrowser, assertLooksWell, inBrowser } from "../../support/browser.js";
import { downloaded } from "../../support/downloads.js";
import { send } from "../../support/request.js";
import { until } from "../../support/until.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";
import { openMenu } from "../../workbench/menus.js";

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

inBrowser("the form computes a graph, and a job's address restores it", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1280, height: 900 } });
  const field = (name: string) => page.getByRole("textbox", { name });
  const number = (name: string) => page.getByRole("spinbutton", { name, exact: true });
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Graph" }).click();
  await field("Prompt").fill("The capital of Italy is");
  await field("Foil token").fill(" London");
  await page.getByRole("button", { name: "Compute graph" }).click();
  await page.getByRole("alert").getByText("Foil token: enter a target token too.").waitFor();
  await field("Target token").fill(" Rome");
  await number("After token").fill("5");
  await number("Nodes").fill("30");
  await number("Node threshold").fill("0.7");
  await number("Removals").fill("3");
  await page.getByRole("button", { name: "Compute graph" }).click();
  await page.waitForURL(/\/graph\/[0-9a-f]{32}$/);
  const id = page.url().slice(-32);
  await page.getByRole("application").waitFor();
  const { body: computed } = await send(`${bench.lab}/lab/v1/jobs/${id}`, "GET");
  const { config, result: found } = computed as { config: Record<string, unknown>; result: GraphResult };
  assert.equal(
    ["operation", "prompt", "position", "target_token", "foil_token", "nodes"].map((name) => config[name]),
    ["graph", "The capital of Italy is", 5, " Rome", " London", 30],
  );
  assert.equal(
    ["node_threshold", "edge_threshold", "measured", "first_token"].map((name) => config[name]),
    [0.7, 0.98, 3, false],
  );
  // The same as on the job's page, next to the same figures.
  await page.getByRole("region", { name: "Result" }).getByText("logit difference between").first().waitFor();
  await page.getByRole("figure", { name: "Removals, estimated and measured" }).waitFor();
  assert.is(await page.locator("[data-node]").count(), found.nodes.length);
  await page.goto(`${bench.workbench.url}/graph/${id}`);
  await page.getByRole("application").waitFor();
  await until(async () => (await field("Target token").inputValue()) === " Rome", "the form is restored");
  assert.equal(
    [await number("Nodes").inputValue(), await number("Node threshold").inputValue()],
    ["30", "0.7"],
  );
  assert.equal(troubles, []);
  await context.close();
});

/** As circuit-tracer writes it. */
const foreign = {
  metadata: { prompt_tokens: ["<bos>", "Fact"], prompt: "Fact", scan: "gemma-2-2b" },
  nodes: [
    {
      ...{ node_id: "4_1234_1", feature: 768_000, layer: "4", ctx_idx: 1, activation: 7.5 },
      ...{ feature_type: "cross layer transcoder", clerp: '<img src="x">' },
    },
    { node_id: "27_8_1", layer: "27", ctx_idx: 1, feature_type: "logit", token_prob: 0.75 },
  ],
  links: [{ source: "4_1234_1", target: "27_8_1", weight: 2 }],
};

inBrowser("a graph's file for circuit-tracer is saved, and opened again", async () => {
  const { page, context, troubles } = await visit(bench);
  await page.goto(`${bench.workbench.url}/graph/${job.id}`);
  await page.getByRole("application").waitFor();
  await openMenu(page, "Export and scripts");
  const { name: saved, bytes } = await downloaded(page, () =>
    page.getByRole("button", { name: "graph.json", exact: true }).click(),
  );
  assert.is(saved, "graph.json");
  const { metadata, nodes, links } = JSON.parse(bytes.toString());
  assert.equal([metadata.prompt, metadata.prompt_tokens], ["The capital of France is", result.tokens]);
  assert.is(nodes.length, result.nodes.length);
  assert.is(links.length, result.size.edges);

  // Opened again, it is the same picture; a file of circuit-tracer has its own names, and another file is refused.
  await page.goto(`${bench.workbench.url}/graph`);
  const open = (file: string, content: Buffer) =>
    page
      .getByLabel("Graph file")
      .setInputFiles({ name: file, mimeType: "application/json", buffer: content });
  const graph = (file: string) => page.getByRole("region", { name: `Attribution graph of ${file}` });
  await open("again.json", bytes);
  await graph("again.json").getByRole("application").waitFor();
  assert.is(await graph("again.json").locator("[data-node]").count(), result.nodes.length);
  const strongest = result.edges.find((edge) => result.nodes[edge.target]?.kind === "target")!.source;
  await graph("again.json").locator(`[data-node="${strongest}"]`).click();
  const name = nodeName(result, result.nodes[strongest]!);
  await graph("again.json").locator("strong").getByText(name).waitFor();
  await open("wrong.json", Buffer.from("{}"));
  await page
    .getByRole("alert")
    .getByText("wrong.json: expected a graph, with prompt tokens, nodes and links.")
    .waitFor();
  await open("foreign.json", Buffer.from(JSON.stringify(foreign)));
  const picture = graph("foreign.json").getByRole("application");
  await picture.focus();
  await picture.press("ArrowDown");
  await graph("foreign.json").getByText('Feature 1234 of block 4 at Fact (token 1), <img src="x">').waitFor();
  await page.getByRole("button", { name: "Close file" }).click();
  await picture.waitFor({ state: "detached" });
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("a head of a graph is ablated in the chat; neurons are not offered", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1280, height: 900 } });
  await page.goto(`${bench.workbench.url}/graph/${job.id}`);
  const picture = page.getByRole("application");
  await picture.waitFor();
  const pin = async (kind: "head" | "neuron") => {
    const at = result.nodes.findIndex((node) => node.kind === kind);
    await picture.locator(`[data-node="${at}"]`).click();
    await page.getByRole("button", { name: "Unpin" }).waitFor();
    return result.nodes[at]!;
  };
  const link = page.getByRole("link", { name: "Ablate this head in chat" });
  await pin("neuron");
  assert.is(await link.count(), 0);
  const { layer, index } = await pin("head");
  await link.click();
  const place = `ablate at layer ${layer}, head ${index}`;
  const slider = page.getByRole("slider", { name: `Strength of ${place}` });
  assert.is(await slider.inputValue(), "1");
  // Only what is possible at a head.
  const kinds = page.getByRole("combobox", { name: "Kind" }).locator("option:not([disabled])");
  assert.equal((await kinds.allTextContents()).sort(), ["ablate", "scale"]);
  await page.getByRole("textbox", { name: "Message" }).fill("What is the capital of France?");
  const [request] = await Promise.all([
    page.waitForRequest((one) => one.method() === "POST" && one.url().endsWith("/api/conversations")),
    page.keyboard.press("Enter"),
  ]);
  assert.equal(request.postDataJSON().interventions, [
    { kind: "ablate", layer, point: "head_out", heads: [index], strength: 1 },
  ]);
  await page
    .getByText(new RegExp(`${place}: \\d+ positions, mean change 100(?:\\.0)? % of the activation norm`))
    .waitFor();
  await page.getByRole("button", { name: `Remove ${place}` }).click();
  await page.getByText(`Removed ${place}.`).waitFor();
  assert.equal(troubles, []);
  await context.close();
});

test.run();
