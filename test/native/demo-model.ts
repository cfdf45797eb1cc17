import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as assert from "uvu/assert";
import { type Context, NativeError, type NativeErrorCode } from "../../src/native/index.js";

export const demo = fileURLToPath(new URL("../../models/demo/tapline-demo.gguf", import.meta.url));

/** A scratch folder that goes with the process. */
export function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), "tapline-native-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Expects a NativeError of that code whose message is one sentence. */
export async function rejects(
  operation: Promise<unknown>,
  code: NativeErrorCode,
  says: RegExp = /./,
): Promise<void> {
  const error = await operation.then(
    () => assert.unreachable(`expected ${code}`),
    (reason) => reason,
  );
  assert.instance(error, NativeError);
  assert.is(error.code, code, error.message);
  assert.match(
    error.message,
    /^(k |nCtx|nBatch|maxSequences|maxTokens|threads|gpuLayers|starts|[A-Z\d])[^\n]*\.$/,
  );
  assert.match(error.message, says);
}

export function layersOf({ info }: { info: { nLayer: number } }): number[] {
  return Array.from({ length: info.nLayer }, (_, i) => i);
}

export async function logitsOf(
  context: Context,
  request: Parameters<Context["advance"]>[0],
): Promise<Float32Array> {
  await context.reset();
  return (await context.advance({ ...request, logits: true })).logits!;
}

/** Largest difference between two arrays, relative to the larger of them. */
export function apart(a: ArrayLike<number>, b: ArrayLike<number>): number {
  assert.is(a.length, b.length);
  let difference = 0;
  let size = 0;
  for (let i = 0; i < a.length; ++i) {
    difference = Math.max(difference, Math.abs(a[i]! - b[i]!));
    size = Math.max(size, Math.abs(a[i]!), Math.abs(b[i]!));
  }
  return size === 0 ? 0 : difference / size;
}

/** Token ids that are the same in every run. */
export function someTokens(length: number, nVocab: number, seed = 1): Int32Array {
  return Int32Array.from({ length }, (_, i) => (seed * 7919 + i * 104729 + ((i * i) % 977)) % nVocab);
}
