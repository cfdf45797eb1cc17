import { test } from "uvu";
import * as assert from "uvu/assert";
import { findCard, type Machine } from "../verify/gpu/card.js";
import { cardSteps, rehearsalSteps } from "../verify/gpu/steps.js";

/** A machine with an H100 and everything else; `lacks` removes parts. */
function machine({ nvcc = true, cublas = true, driver = true, memory = 81_559 } = {}): Machine {
  const files = [...(nvcc ? ["/cuda/bin/nvcc"] : []), ...(cublas ? ["/cuda/include/cublas_v2.h"] : [])];
  return {
    env: { PATH: "/usr/bin:/cuda/bin" },
    platform: "linux",
    exists: (path) => files.includes(path),
    run: (command) => {
      if (!driver) throw new Error(`${command}: not found`);
      return `NVIDIA H100 80GB HBM3, 9.0, ${memory}\n`;
    },
  };
}

const rest = "; --rehearse runs the steps on pretend GPUs instead.";
const refusal = (found: Machine) => {
  try {
    findCard(found);
  } catch (error) {
    return (error as Error).message;
  }
  return undefined;
};

test("a complete machine has a card, by its name and capability", () => {
  assert.equal(findCard(machine()), { name: "NVIDIA H100 80GB HBM3", capability: "9.0" });
});

test("everything that a machine lacks is named in one sentence", () => {
  const gpu = "an NVIDIA GPU with a working driver (nvidia-smi does not name one)";
  const toolkit = "NVIDIA's CUDA toolkit (nvcc is neither on the PATH nor named by CUDACXX)";
  assert.is(refusal(machine({ driver: false })), `This machine lacks ${gpu}${rest}`);
  assert.is(
    refusal(machine({ nvcc: false, driver: false })),
    `This machine lacks ${toolkit} and ${gpu}${rest}`,
  );
  assert.is(
    refusal(machine({ cublas: false })),
    `This machine lacks cuBLAS (the toolkit of /cuda/bin/nvcc does not have its headers)${rest}`,
  );
  assert.is(
    refusal(machine({ memory: 8192 })),
    `This machine lacks a GPU with 22 GiB of memory (NVIDIA H100 80GB HBM3 has 8.0 GiB)${rest}`,
  );
});

test("the build of a card names its architecture, next to options of the user's", () => {
  const [build] = cardSteps({ name: "L40S", capability: "8.9" }, "TAPLINE_WERROR=ON");
  assert.equal(build?.env, {
    TAPLINE_BACKEND: "cuda",
    TAPLINE_CMAKE_OPTIONS: "TAPLINE_WERROR=ON CMAKE_CUDA_ARCHITECTURES=89",
  });
});

test("the rehearsal has the benchmarks of a card", () => {
  const benches = (steps: ReturnType<typeof cardSteps>) =>
    steps.map(({ name }) => name).filter((name) => name.startsWith("bench "));
  const wanted = ["bench live", "bench capture", "bench extract", "bench peers"];
  assert.equal(benches(cardSteps({ name: "H100", capability: "9.0" }, "")), wanted);
  assert.equal(benches(rehearsalSteps(false, {})), wanted);
});

test.run();
