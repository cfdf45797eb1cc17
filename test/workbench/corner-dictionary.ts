import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { Dictionaries } from "../../src/library/index.js";

/**
 * A dictionary of block 5 whose features are the first values of its rows, and the negative of the first.
 * @param hidden how wide the rows of the model are
 */
export async function keepDictionary(home: string, hidden = 128): Promise<void> {
  const features = 4;
  const folder = join(home, "corner");
  mkdirSync(folder);
  const [encoder, decoder] = [new Float32Array(hidden * features), new Float32Array(features * hidden)];
  for (let feature = 0; feature < features; feature += 1) {
    const [place, sign] = feature === 3 ? [0, -1] : [feature, 1];
    encoder[place * features + feature] = sign;
    decoder[feature * hidden + place] = sign;
  }
  const tensors = {
    W_enc: { shape: [hidden, features], data: encoder },
    W_dec: { shape: [features, hidden], data: decoder },
    b_enc: { shape: [features], data: new Float32Array(features) },
    b_dec: { shape: [hidden], data: new Float32Array(hidden) },
  };
  writeFileSync(join(folder, "sae_weights.safetensors"), encodeSafetensors(tensors));
  const metadata = { hook_name: "blocks.5.hook_resid_post" };
  writeFileSync(join(folder, "cfg.json"), JSON.stringify({ architecture: "standard", metadata }));
  await new Dictionaries(home).add("corner", folder);
}
