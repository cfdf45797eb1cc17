/**
 * Graphs in the workbench: the form and its job; pointing, moving and selecting show a node's strongest parents and children; its
 * files; supernodes; two graphs next to each other; heads that are ablated and features that are clamped in the chat.
 */
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { GraphResult, Job } from "../../../src/contracts/index.js";
import { featureText, nodeName, raisedText } from "../../../src/findings/graph.js";
import { pairNodes, pairsSentence } from "../../../src/findings/graph-difference.js";
import { nodeId } from "../../../src/findings/graph-ids.js";
import { signed } from "../../../src/findings/numbers.js";
import { Dictionaries } from "../../../src/library/index.js";
import { aroundBrowser, assertLooksWell, inBrowser } from "../../support/browser.js";
import { downloaded } from "../../support/downloads.js";
import { randomTranscoder, writeSetConfig, writeTranscoder } from "../../support/random-transcoders.js";
import { send } from "../../support/request.js";
import { until } from "../../support/until.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";
import { openMenu } from "../../workbench/menus.js";

let bench: Bench;
let job: Job;
let result: GraphResult;
/** Of another prompt, with features of random transcoders. */
let features: Job;
aroundBrowser({
  async start() {
    bench = await startBench();
    for (const layer of [3, 5]) {
      writeTranscoder(bench.folder, layer, randomTranscoder(layer, { width: 128, features: 300 }));
      const path = join(bench.folder, `layer_${layer}.safetensors`);
      writeSetConfig(bench.folder);
      await new Dictionaries(bench.folder).add(`set-${layer}`, path);
    }
    job = await computed({ prompt: "The capital of France is", nodes: 60, measured: 4 });
    result = job.result as GraphResult;
    // Random features have little influence, so nothing is pruned.
    const all = { nodes: 60, measured: 0, node_threshold: 1 };
    features = await computed({ prompt: "The capital of Japan is", transcoders: "set", ...all });
  },
  end: () => bench?.close(),
});

/** The job of a graph of the embedded model, completed. */
async function computed(body: object): Promise<Job> {
  const jobs = `${bench.lab}/lab/v1/jobs`;
  let found = (await send(jobs, "POST", { operation: "graph", model: "demo", ...body })).body as Job;
  await until(async () => {
    found = (await send(`${jobs}/${found.id}`, "GET")).body;
    return found.ended !== null;
  }, "the graph's job ends");
  assert.is(found.status, "completed", found.error);
  return found;
}

/** What an edge list says, by hand from the result. */
const listed = (end: "source" | "target", index: number) =>
  result.edges
    .filter((edge) => edge[end === "source" ? "target" : "source"] === index)
    .sort((a, b) => b.influence - a.influence)
    .slice(0, 6)
    .map((edge) => nodeName(result, result.nodes[edge[end]]!));

for (const width of [1440, 390]) {
  inBrowser(`a node shows its parents and children, and stays when selected, ${width} px wide`, async () => {
    const { page, context, troubles } = await visit(bench, { viewport: { width, height: 900 } });
    await page.goto(`${bench.workbench.url}/jobs/${job.id}`);
    const graph = page.getByRole("region", { name: "Attribution graph" });
    const picture = graph.getByRole("application");
    await picture.waitFor();
    await graph.getByText("No node selected.").waitFor();
    const target = result.nodes.findIndex(({ kind }) => kind === "target");
    const parents = graph.locator(".graph-neighbours > div").first().locator("li");
    const texts = async () => (await parents.allTextContents()).map((text) => text.replace(/ \S+$/, ""));

    // By keyboard: the target first, and Enter selects it.
    await picture.focus();
    await graph.getByText("The logit of").waitFor();
    assert.equal(await texts(), listed("source", target));
    const clear = graph.getByRole("button", { name: "Clear selection" });
    await picture.press("Enter");
    await clear.waitFor();
    await picture.press("ArrowDown");
    await clear.waitFor({ state: "detached" });

    // Pointing at a node shows it; leaving shows the selected one again.
    const strongest = result.edges.find((edge) => edge.target === target)!.source;
    await picture.blur();
    await clear.waitFor();
    const node = picture.locator(`[data-node="${strongest}"]`);
    await node.hover();
    await until(async () => {
      const expected = listed("source", strongest);
      return JSON.stringify(await texts()) === JSON.stringify(expected);
    }, "the pointed node's parents");
    await node.click();
    await clear.click();
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

inBrowser("nodes are pinned and grouped, and the saved file keeps the supernodes", async () => {
  const { page, context, troubles } = await visit(bench);
  await page.goto(`${bench.workbench.url}/graph/${job.id}`);
  const graph = page.getByRole("region", { name: "Attribution graph" });
  const picture = graph.getByRole("application");
  await picture.waitFor();
  const target = result.nodes.findIndex(({ kind }) => kind === "target");
  const [first, second] = result.edges
    .filter((edge) => edge.target === target)
    .map(({ source }) => source) as [number, number];
  await picture.locator(`[data-node="${first}"]`).click({ modifiers: ["Shift"] });
  await picture.locator(`[data-node="${second}"]`).click();
  await graph.getByRole("button", { name: "Pin", exact: true }).click();
  const groups = page.getByRole("region", { name: "Supernodes" });
  await groups.getByText("2 pinned nodes").waitFor();
  await groups.getByRole("button", { name: "Group pinned nodes" }).click();
  await groups.getByRole("alert").getByText("Enter a name for the supernode.").waitFor();
  await groups.getByRole("textbox", { name: "Name", exact: true }).fill("<b>say</b> Paris");
  await groups.getByRole("button", { name: "Group pinned nodes" }).click();
  await groups.getByRole("textbox", { name: "Name of supernode 1" }).waitFor();
  // The sum of the two edges, by hand.
  const sum = result.edges
    .filter((edge) => edge.target === target && (edge.source === first || edge.source === second))
    .reduce((total, { value }) => total + value, 0);
  const edges = groups.getByRole("list", { name: "Edges between supernodes" });
  await edges.getByText(signed(sum)).first().waitFor();
  assert.is(await page.locator(".mark.grouped").count(), 2);

  const { name: saved, bytes } = await downloaded(page, () =>
    groups.getByRole("button", { name: "Save graph as JSON" }).click(),
  );
  assert.match(saved, /^tapline-graph-.*\.json$/);
  const { qParams, nodes } = JSON.parse(bytes.toString());
  const ids = [first, second].map((at) => nodeId(result, result.nodes[at]!));
  assert.equal(qParams.supernodes, [["<b>say</b> Paris", ...ids]]);
  assert.equal(qParams.pinnedIds, ids);
  assert.ok(ids.every((id) => nodes.some((node: { node_id: string }) => node.node_id === id)));

  // Another visit has them, and so has the file.
  await page.reload();
  await groups.getByRole("textbox", { name: "Name of supernode 1" }).waitFor();
  await page.goto(`${bench.workbench.url}/graph`);
  await page
    .getByLabel("Graph file")
    .setInputFiles({ name: "named.json", mimeType: "application/json", buffer: bytes });
  const name = page.getByRole("textbox", { name: "Name of supernode 1" });
  await name.waitFor();
  assert.is(await name.inputValue(), "<b>say</b> Paris");
  await page.getByRole("button", { name: "Ungroup <b>say</b> Paris" }).click();
  await page.getByText("2 pinned nodes").waitFor();
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("two graphs are compared: nodes of both, and of one", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1440, height: 900 } });
  await page.goto(`${bench.workbench.url}/graph/${job.id}`);
  await page.getByRole("combobox", { name: "Compare with" }).selectOption(features.id);
  await page.waitForURL((url) => url.searchParams.get("with") === features.id);
  const both = page.getByRole("region", { name: "Both graphs" });
  const other = features.result as GraphResult;
  const pairs = pairNodes(result, other);
  await both.getByText(pairsSentence(result, other, pairs)).waitFor();
  const first = page.getByRole("region", { name: "Attribution graph (first)" });
  const second = page.getByRole("region", { name: "Attribution graph (second)" });
  await second.getByRole("application").waitFor();
  assert.is(await first.locator(".mark.only").count(), pairs.onlyOne.length);
  assert.is(await second.locator(".mark.only").count(), pairs.onlyOther.length);
  // Neurons and features have nothing in common.
  assert.is(
    pairs.both.every(({ one }) =>
      ["embedding", "target", "rounding", "rest"].includes(result.nodes[one]!.kind),
    ),
    true,
  );
  await page.getByRole("button", { name: "Close comparison" }).click();
  await second.waitFor({ state: "detached" });
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("a feature without a label has its tokens here and those that it raises", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1440, height: 900 } });
  await page.goto(`${bench.workbench.url}/graph/${features.id}`);
  const found = features.result as GraphResult;
  const [one] = found.features!;
  const at = found.nodes.findIndex(
    ({ kind, layer, index }) => kind === "feature" && layer === one!.layer && index === one!.index,
  );
  await page.getByRole("application").locator(`[data-node="${at}"]`).click();
  const graph = page.getByRole("region", { name: "Attribution graph" });
  const node = found.nodes[at]!;
  await graph.getByText(featureText(found, node)!, { exact: true }).waitFor();
  const name = `${nodeName(found, node)}, ${raisedText(found.features, node)}`;
  await graph.getByText(`${name[0]!.toUpperCase()}${name.slice(1)}`, { exact: true }).waitFor();
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("a feature of a graph is clamped in the chat, where its decoder writes", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1280, height: 900 } });
  await page.goto(`${bench.workbench.url}/graph/${features.id}`);
  const picture = page.getByRole("application");
  await picture.waitFor();
  const { nodes } = features.result as GraphResult;
  const at = nodes.findIndex(({ kind }) => kind === "feature");
  const { layer, index } = nodes[at]!;
  await picture.locator(`[data-node="${at}"]`).click();
  await page.getByRole("spinbutton", { name: "Clamp its activation to" }).fill("1.5");
  const graph = page.getByRole("region", { name: "Attribution graph" });
  await graph.getByText("In a terminal").click();
  const command = graph.getByRole("region", { name: "In a terminal" });
  await command
    .getByText(`--feature set-${layer}:${index} --point ffn_out --positions all --min 1.5 --max 1.5`)
    .waitFor();
  await page.getByRole("link", { name: "Clamp this feature in chat" }).click();
  const place = `clamp at layer ${layer}`;
  await page.getByRole("button", { name: `Remove ${place}` }).waitFor();
  assert.is(await page.getByRole("spinbutton", { name: "Activation" }).inputValue(), "1.5");
  await page.getByRole("textbox", { name: "Message" }).fill("What is the capital of France?");
  const [request] = await Promise.all([
    page.waitForRequest((one) => one.method() === "POST" && one.url().endsWith("/api/conversations")),
    page.keyboard.press("Enter"),
  ]);
  assert.equal(request.postDataJSON().interventions, [
    {
      ...{ kind: "clamp", layer, point: "ffn_out", strength: 1, min: 1.5, max: 1.5 },
      vector: { feature: [`set-${layer}`, index] },
    },
  ]);
  await page.getByText(new RegExp(`${place}: \\d+ positions`)).waitFor();
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
    await page.getByRole("button", { name: "Clear selection" }).waitFor();
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
