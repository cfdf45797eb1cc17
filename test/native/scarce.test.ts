import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { demo, scratch } from "./demo-model.js";

// A machine without threads or memory is made by a library that stands before the process's own: Linux, with a C
// compiler. Under a sanitizer, which is such a library, too, it would be the second.
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const folder = scratch();
const library = join(folder, "scarce.so");
const possible =
  process.platform === "linux" &&
  process.env.TAPLINE_SANITIZED === undefined &&
  spawnSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, here("../support/faults/scarce.c"), "-ldl"])
    .status === 0;

const test = suite("machines without threads or memory");
const noMemory = "OUT_OF_MEMORY: There is not enough memory for this operation.";
const noThreads = "OUT_OF_MEMORY: The system has no more threads for this process.";

(possible ? test : test.skip)(
  "failed allocations and threads are refused with a sentence, and nothing ends",
  () => {
    const bytes = "400004";
    const output = execFileSync(
      process.execPath,
      ["--import", "tsx", here("./fixtures/scarce.ts"), demo, bytes],
      {
        encoding: "utf8",
        env: { ...process.env, LD_PRELOAD: library, SCARCE_BYTES: bytes },
      },
    );
    assert.equal(JSON.parse(output), {
      "model without threads": noThreads,
      "engine without threads": noThreads,
      "probe with one thread": "done",
      "probe without memory": noMemory,
      "tokens without memory": noMemory,
      "sequences without memory": noMemory,
      "detokenise without memory": noMemory,
      "text without memory": noMemory,
      "threads without memory": noMemory,
      afterwards: "done",
      "request without memory": noMemory,
      "request afterwards": "done",
      "close without threads": noThreads,
      "close afterwards": "done",
    });
  },
);

test.run();
