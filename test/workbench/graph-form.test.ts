/** The Graph form: its request, and how it is restored from a job. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { GraphConfig } from "../../src/contracts/index.js";
import { checkSubmission } from "../../src/contracts/index.js";
import {
  type GraphForm,
  graphForm,
  graphFormOf,
  graphRequest,
} from "../../src/workbench/page/graph-request.js";

const asked = (change: Partial<GraphForm> = {}) => graphRequest({ ...graphForm, prompt: "a b", ...change });

test("the request has what the form shows, and defaults only where they say how much is computed", () => {
  const usual = { operation: "graph", prompt: "a b", nodes: 500, measured: 50 };
  assert.equal(asked(), usual);
  assert.equal(asked({ target: " c", foil: " d", position: 2 }), {
    ...{ ...usual, position: 2, target_token: " c", foil_token: " d" },
  });
  const change = { nodes: 60, measured: 0, nodeThreshold: 0, edgeThreshold: 1, firstToken: true };
  assert.equal(asked(change), {
    ...{ operation: "graph", prompt: "a b", nodes: 60, measured: 0 },
    ...{ node_threshold: 0, edge_threshold: 1, first_token: true },
  });
});

test("the Lab accepts every request, and its configuration restores the form", () => {
  const all: Partial<GraphForm>[] = [
    {},
    { target: " c" },
    { target: " c", foil: " d", position: 0, nodes: 1, measured: 500 },
    { position: -3, nodes: 7500, measured: 0, nodeThreshold: 1, edgeThreshold: 0.5, firstToken: true },
  ];
  for (const change of all) {
    const config = checkSubmission({ model: "demo", ...asked(change) }) as GraphConfig;
    assert.equal(graphFormOf(config), { ...graphForm, prompt: "a b", ...change });
  }
});

test("a foil without a target is refused in a sentence", () => {
  assert.throws(() => asked({ foil: " d" }), /^Foil token: enter a target token too\.$/);
});

test.run();
