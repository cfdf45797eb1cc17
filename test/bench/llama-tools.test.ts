import { test } from "uvu";
import * as assert from "uvu/assert";
import { levelFault, llamaTools } from "../../bench/llama-tools.js";

test("llama.cpp's programs are not compared with an addon at a lower level", async () => {
  assert.is(levelFault({}), undefined);
  const sentence =
    "llama.cpp's programs are compiled for this processor, and the addon's level is x86-64-v3: " +
    "unset TAPLINE_LEVEL to compare them.";
  assert.is(levelFault({ TAPLINE_LEVEL: "x86-64-v3" }), sentence);
  const { TAPLINE_LEVEL: own } = process.env;
  process.env.TAPLINE_LEVEL = "x86-64-v3";
  try {
    const built = await llamaTools(["llama-bench"]).catch(({ message }: Error) => message);
    assert.is(built, sentence);
  } finally {
    if (own === undefined) delete process.env.TAPLINE_LEVEL;
    else process.env.TAPLINE_LEVEL = own;
  }
});

test.run();
