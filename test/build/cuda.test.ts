import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkArchitectures, cudaArchitectures, driverStub, functionsOf } from "../../scripts/build/cuda.js";
import { saying } from "../support/saying.js";

test("architectures are CMake's names", () => {
  for (const list of ["90", "75-virtual;80-real", "120a-real", cudaArchitectures]) {
    assert.is(checkArchitectures(list), list);
  }
  for (const [list, wrong] of [
    ["sm_90", "sm_90"],
    ["80,90", "80,90"],
    ["90;", ""],
  ] as const) {
    assert.throws(
      () => checkArchitectures(list),
      saying(`--cuda-architectures takes CMake's names such as 90 or "80-real;90-virtual", not "${wrong}".`),
    );
  }
});

test("the driver's stub has each declared function once", () => {
  const header = `typedef enum { A } CUresult;
CUresult cuInit(unsigned int Flags);
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n);
CUresult
 cuMemFree_v2 (CUdeviceptr p); CUresult cuInit(unsigned int Flags);
typedef void ( *CUhostFn)(void* userData);`;
  const names = functionsOf(header);
  assert.equal(names, ["cuInit", "cuMemAlloc_v2", "cuMemFree_v2"]);
  assert.is(
    driverStub(names.slice(0, 2)),
    "int cuInit(void) { return 100; }\nint cuMemAlloc_v2(void) { return 100; }\n",
  );
});

test.run();
