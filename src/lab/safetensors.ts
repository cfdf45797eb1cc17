import type { Artifacts } from "./artifacts.js";

export interface Tensor {
  shape: readonly number[];
  data: Float32Array;
}

/**
 * Writes float32 tensors as a .safetensors file: the length of a JSON header (8 bytes, little-endian), the
 * header padded with spaces so that data begins at a multiple of 8, then the data.
 * (Format: the safetensors README, huggingface/safetensors.)
 */
export async function writeSafetensors(
  artifacts: Artifacts,
  name: string,
  tensors: Record<string, Tensor>,
  metadata: Record<string, string> = {},
): Promise<void> {
  const header: Record<string, unknown> = { __metadata__: metadata };
  let offset = 0;
  for (const [tensor, { shape, data }] of Object.entries(tensors)) {
    if (shape.reduce((product, length) => product * length, 1) !== data.length) {
      throw new RangeError(`${tensor} has ${data.length} values, its shape is [${shape.join(", ")}].`);
    }
    header[tensor] = { dtype: "F32", shape, data_offsets: [offset, offset + data.byteLength] };
    offset += data.byteLength;
  }
  const text = JSON.stringify(header);
  const json = Buffer.from(
    text.padEnd(Math.ceil(Buffer.byteLength(text) / 8) * 8 - Buffer.byteLength(text) + text.length),
  );
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  await artifacts.create(name, async (file) => {
    await file.write(Buffer.concat([length, json]), 0);
    let position = 8 + json.length;
    for (const { data } of Object.values(tensors)) {
      await file.write(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), position);
      position += data.byteLength;
    }
  });
}
