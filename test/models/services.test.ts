import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { InspectResult } from "../../src/contracts/index.js";
import { type ServingEvent, serve } from "../../src/inference/process/supervisor.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { command } from "../cli/in-process.js";
import { demoInspect, openHarness } from "../lab/harness.js";
import { send } from "../support/request.js";
import { mainCommit, TestHub } from "./support/hub.js";

const tagged = "fedcba9876543210fedcba9876543210fedcba98";
let hub: TestHub;
let home: string;

test.before.each(async () => {
  hub = await TestHub.open();
  hub.repositories["tiny/demo"] = {
    files: { "demo-F16.gguf": readFileSync(demoModelPath) },
    refs: { v1: tagged },
  };
  home = await mkdtemp(join(tmpdir(), "tapline-hub-services-"));
  Object.assign(process.env, { HF_ENDPOINT: hub.url, HF_HOME: home }); // processes of services inherit them
});
test.after.each(async () => {
  delete process.env.HF_ENDPOINT;
  delete process.env.HF_HOME;
  await hub.close();
  await rm(home, { recursive: true, force: true });
});

test("a job downloads its model, and its provenance has repository and commit", async () => {
  hub.faults = { dripMs: 20, dripBytes: 40_000 };
  const lab = await openHarness();
  try {
    const { id } = await lab.submit({ ...demoInspect, model: "tiny/demo", revision: "v1" });
    const { progress } = await lab.until(
      id,
      (job) => job.progress.stage === "download" && job.progress.done > 0,
    );
    assert.is(progress.total, readFileSync(demoModelPath).length);
    const job = await lab.finished(id);
    assert.is(job.status, "completed", job.error);
    const { provenance } = job.result as InspectResult;
    assert.is(provenance.requested_model, "tiny/demo");
    assert.is(provenance.requested_revision, "v1");
    assert.equal(provenance.resolved_model, {
      path: join(home, "hub", "models--tiny--demo", "snapshots", tagged, "demo-F16.gguf"),
      repository: "tiny/demo",
      commit: tagged,
    });
    assert.ok((provenance.seconds.download as number) > 0);
    const failed = await lab.finished((await lab.submit({ ...demoInspect, model: "tiny/none" })).id);
    assert.match(failed.error as string, "is neither a local file nor a repository");
  } finally {
    await lab.close();
  }
});

test("the command line looks into all of a hub's model, as into a file's", async () => {
  const lab = await openHarness();
  try {
    const { stdout, stderr } = await command(
      ["inspect", demoInspect.prompt, "--model", "tiny/demo", "--json", "--quiet", "--no-out"].concat(
        "--lab",
        lab.lab.url,
      ),
    );
    assert.equal(JSON.parse(stdout).job.config.layers, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert.is(stderr, "");
  } finally {
    await lab.close();
  }
});

test("a cancelled job keeps what it has downloaded for the next one", async () => {
  hub.faults = { dripMs: 20, dripBytes: 40_000 };
  const lab = await openHarness();
  try {
    const { id } = await lab.submit({ ...demoInspect, model: "tiny/demo" });
    await lab.until(id, (job) => job.progress.stage === "download" && job.progress.done > 300_000);
    await lab.request("POST", `/jobs/${id}/cancel`, {});
    assert.is((await lab.finished(id)).status, "cancelled");
    hub.faults = {};
    const next = await lab.finished((await lab.submit({ ...demoInspect, model: "tiny/demo" })).id);
    assert.is(next.status, "completed", next.error);
    const start = Number(/^bytes=(\d+)-/.exec(hub.downloads.at(-1)?.range ?? "")?.[1]);
    assert.ok(start >= 300_000, String(start));
  } finally {
    await lab.close();
  }
});

test("serve downloads with progress, and captures record repository and commit", async () => {
  const events: ServingEvent[] = [];
  const serving = await serve({
    model: "tiny/demo:f16",
    host: "127.0.0.1",
    port: 0,
    onEvent: (event) => events.push(event),
  });
  try {
    const stages = events.flatMap((event) => (event.event === "loading" ? [event] : []));
    assert.is(stages.filter(({ stage }) => stage === "download").at(-1)?.fraction, 1);
    const id = "tiny/demo:f16"; // what was asked for, not the file's name
    const { body: list } = await send(`${serving.url}/v1/models`, "GET");
    assert.equal([serving.info.id, list.data[0].id], [id, id]);
    for (const written of [id, encodeURIComponent(id)]) {
      assert.is((await send(`${serving.url}/v1/models/${written}`, "GET")).body.id, id);
    }
    const ask = (model: string) =>
      send(`${serving.url}/v1/completions`, "POST", { model, prompt: "The", max_tokens: 1 });
    assert.equal([(await ask(id)).status, (await ask("demo-F16")).status], [200, 404]);
    const { status, body } = await send(`${serving.url}/lab/activations`, "POST", {
      model: serving.info.id,
      prompt: demoInspect.prompt,
    });
    assert.is(status, 200);
    assert.is(body.provenance.resolved_model.repository, "tiny/demo");
    assert.is(body.provenance.resolved_model.commit, mainCommit);
  } finally {
    await serving.close();
  }
});

test.run();
