import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { npyFile, zipOf } from "../../support/npz-bytes.js";
import { startServer, type TestServer } from "./serving.js";

/** It keeps two directions: "unknown", from invented places against real ones, and "random", which is as long. */
export let server: TestServer;
export const home = mkdtempSync(join(tmpdir(), "tapline-live-"));
export const layer = 5;
export const real = ["France", "Germany", "Spain", "Italy", "Portugal", "Poland", "Norway", "Japan"];
export const invented = [
  "Brovia",
  "Quenland",
  "Tarsovia",
  "Melgria",
  "Zondia",
  "Plavenia",
  "Urdania",
  "Fenroy",
];
/** Of which no direction is made. */
export const heldOut = {
  real: ["Sweden", "Austria", "Greece"],
  invented: ["Drovenia", "Kalmoria", "Vestria"],
};
export const question = (country: string) => `The capital of ${country} is`;

export interface Reply {
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever comes
  [field: string]: any;
}

export const complete = async (prompt: string, tapline?: object, more: object = {}): Promise<Reply> => {
  const { status, body } = await server.post("/v1/completions", {
    prompt,
    temperature: 0,
    max_tokens: 4,
    cache_prompt: true,
    ...(tapline && { tapline }),
    ...more,
  });
  assert.is(status, 200, JSON.stringify(body));
  return body;
};
export const textOf = (body: Reply): string => body.choices[0].text;
export const steer = (vector: string, strength: number, more: object = {}) => ({
  interventions: [
    { kind: "steer", vector, layer, strength, strength_unit: "vector", positions: "all", ...more },
  ],
});

/** A server of the demo model for all tests of a file. */
export function aroundServer(): void {
  test.before(async () => {
    server = await startServer({ home, parallel: 4 });
    const made = await server.post("/lab/vectors", {
      name: "unknown",
      positive: invented.map(question),
      negative: real.map(question),
      layers: [4, layer],
    });
    assert.is(made.status, 201, JSON.stringify(made.body));
    // As long as "unknown", in no particular direction.
    const { length } = made.body.layers[1];
    const width = server.service.engine.info.nEmbd;
    const wave = Float32Array.from({ length: width }, (_, index) => Math.sin(12.9898 * (index + 1) ** 2));
    const scale = length / Math.sqrt(wave.reduce((sum, value) => sum + value * value, 0));
    const random = wave.map((value) => value * scale);
    const put = await server.put("/lab/vectors/random", zipOf({ layer_5: npyFile(random, [width]) }));
    assert.is(put.status, 200, JSON.stringify(put.body));
  });
  test.after(async () => {
    await server.close();
    rmSync(home, { recursive: true, force: true });
  });
}

/** A direction that the server keeps, at a layer. */
export async function vectorOf(name: string, at: number): Promise<Float32Array> {
  const { vector } = await server.service.library.vectors.layer(name, at, server.service.library.model);
  return vector;
}
