import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeSafetensors } from "../../../src/formats/safetensors.js";
import { Dictionaries } from "../../../src/library/index.js";
import { temporaryFolder } from "../../support/temporary.js";
import { home } from "./live.js";

/**
 * Saves a dictionary in the server's library whose feature f reads value f of a row, feature 1 with 0.5 added, and feature 3
 * the negative of value 0.
 */
export async function keepCorner(name: string, hook: string, hidden = 128): Promise<void> {
  const folder = temporaryFolder("live-corner");
  const features = 4;
  const encoder = new Float32Array(hidden * features);
  for (let f = 0; f < 3; f++) encoder[f * features + f] = 1;
  encoder[3] = -1;
  const one = (shape: number[], data: Float32Array) => ({ shape, data });
  const tensors = {
    W_enc: one([hidden, features], encoder),
    W_dec: one([features, hidden], new Float32Array(features * hidden)),
    b_enc: one([features], Float32Array.of(0, 0.5, 0, 0)),
    b_dec: one([hidden], new Float32Array(hidden)),
  };
  writeFileSync(join(folder, "sae_weights.safetensors"), encodeSafetensors(tensors));
  const metadata = { hook_name: hook };
  writeFileSync(join(folder, "cfg.json"), JSON.stringify({ architecture: "standard", metadata }));
  await new Dictionaries(home).add(name, folder);
}
