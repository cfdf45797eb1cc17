#!/usr/bin/env node
/**
 * `npm run conformance`: builds the programs of llama.cpp that conformance/run.py asks or needs, and asks every engine.
 * Arguments are passed on; the table is docs/conformance.md.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { buildTools } from "./build/tools.js";

const place = (/** @type {string} */ path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

const tools = await buildTools(["llama-server", "llama-quantize"]);
const { status } = spawnSync(
  "python3",
  [place("conformance/run.py"), "--table", place("docs/conformance.md"), ...process.argv.slice(2)],
  {
    stdio: "inherit",
    env: {
      ...process.env,
      TAPLINE_COMMAND: `node ${place("bin/tapline.js")}`,
      LLAMA_SERVER: tools["llama-server"],
      LLAMA_QUANTIZE: tools["llama-quantize"],
    },
  },
);
process.exitCode = status ?? 1;
