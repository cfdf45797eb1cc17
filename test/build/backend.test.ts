import { test } from "uvu";
import * as assert from "uvu/assert";
import { chooseBackend } from "../../scripts/build/backend.js";

/** A Linux machine without anything. */
const bare = {
  env: { PATH: "/usr/bin" } as NodeJS.ProcessEnv,
  platform: "linux",
  arch: "x64",
  exists: (_path: string) => false,
  run: (): string => {
    throw new Error("not found");
  },
};
const gpu = () => "GPU 0: NVIDIA H200 (UUID: GPU-1)\n";
const toolkit = (path: string) =>
  ["/usr/local/cuda/bin/nvcc", "/usr/local/cuda/include/cublas_v2.h"].includes(path.replaceAll("\\", "/"));

test("nothing special: CPU", () => {
  assert.equal(chooseBackend(undefined, bare), {
    backend: "cpu",
    reason: "no CUDA toolkit found",
    chosen: false,
  });
});

test("Apple silicon: Metal; an Intel Mac: CPU", () => {
  assert.is(chooseBackend(undefined, { ...bare, platform: "darwin", arch: "arm64" }).backend, "metal");
  assert.is(chooseBackend(undefined, { ...bare, platform: "darwin" }).backend, "cpu");
});

if (process.platform !== "win32") {
  test("toolkit and working GPU: CUDA", () => {
    assert.is(chooseBackend(undefined, { ...bare, exists: toolkit, run: gpu }).backend, "cuda");
  });

  test("without a GPU, a working driver or cuBLAS the backend is CPU, with the reason", () => {
    const noGpu = chooseBackend(undefined, { ...bare, exists: toolkit });
    assert.is(noGpu.backend, "cpu");
    assert.match(noGpu.reason, /no working NVIDIA GPU/);
    assert.is(
      chooseBackend(undefined, { ...bare, exists: toolkit, run: () => "No devices found.\n" }).backend,
      "cpu",
    );
    const partial = { ...bare, exists: (path: string) => path.endsWith("/cuda/bin/nvcc"), run: gpu };
    assert.match(chooseBackend(undefined, partial).reason, /no cuBLAS/);
  });
}

test("TAPLINE_BACKEND decides, and a wrong value is refused", () => {
  const env = { TAPLINE_BACKEND: "vulkan" };
  assert.equal(chooseBackend(undefined, { ...bare, env }), {
    backend: "vulkan",
    reason: "TAPLINE_BACKEND",
    chosen: true,
  });
  assert.throws(() => chooseBackend(undefined, { ...bare, env: { TAPLINE_BACKEND: "gpu" } }), /not "gpu"/);
});

test("a backend chosen by hand stays chosen; a detected one is detected again", () => {
  assert.is(chooseBackend({ backend: "vulkan", chosen: true }, bare).backend, "vulkan");
  assert.is(chooseBackend({ backend: "cuda", chosen: false }, bare).backend, "cpu");
  assert.is(
    chooseBackend({ backend: "vulkan", chosen: true }, { ...bare, env: { TAPLINE_BACKEND: "cpu" } }).backend,
    "cpu",
  );
});

test.run();
