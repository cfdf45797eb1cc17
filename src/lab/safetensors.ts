import { safetensorsHead, type Tensor } from "../formats/safetensors.js";
import type { Artifacts } from "./artifacts.js";

/** Writes float32 tensors as a .safetensors artifact, one after another. */
export async function writeSafetensors(
  artifacts: Artifacts,
  name: string,
  tensors: Record<string, Tensor>,
  metadata: Record<string, string> = {},
): Promise<void> {
  const head = safetensorsHead(tensors, metadata);
  await artifacts.create(name, async (file) => {
    await file.write(head, 0);
    let position = head.length;
    for (const { data } of Object.values(tensors)) {
      await file.write(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), position);
      position += data.byteLength;
    }
  });
}
