/** A workbench whose server it can give another model, before a hub of this process with two: one of them is none. */
import { readFileSync } from "node:fs";
import { OwnServer } from "../../src/cli/own-server.js";
import { startLab } from "../../src/lab/index.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { TestHub } from "../models/support/hub.js";
import { compiledWorker } from "../support/program.js";
import { type Bench, startBench } from "./bench.js";

/** The embedded model, as the hub has it. */
export const broughtId = "tiny/demo/demo-F16.gguf";

const names = ["HF_ENDPOINT", "HF_HOME", "TAPLINE_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN"];

export interface ModelsBench extends Bench {
  hub: TestHub;
}

export async function startModelsBench(): Promise<ModelsBench> {
  const saved = names.map((name) => [name, process.env[name]] as const);
  const hub = await TestHub.open();
  hub.repositories["tiny/demo"] = {
    files: {
      "demo-F16.gguf": readFileSync(demoModelPath),
      // Looks like a model and is none.
      "broken-Q8_0.gguf": Buffer.concat([Buffer.from("GGUF"), Buffer.alloc(2048)]),
    },
  };
  const bench = await startBench(async (home) => {
    for (const name of names) delete process.env[name];
    Object.assign(process.env, { HF_ENDPOINT: hub.url, HF_HOME: home, TAPLINE_HOME: home });
    const { signal } = new AbortController();
    const lab = await startLab({ port: 0, home, queueCapacity: 8, backend: "cpu", ...compiledWorker });
    const own = await OwnServer.start("demo", { host: "127.0.0.1", port: 0, signal, onEvent: () => {} });
    return {
      server: own.url,
      lab: lab.url,
      serve: (model, onProgress) => own.serve(model, onProgress),
      close: () => Promise.all([own.close(), lab.close()]),
    };
  });
  return Object.assign(bench, {
    hub,
    close: afterwards(bench.close, async () => {
      await hub.close();
      for (const [name, value] of saved) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    }),
  });
}

function afterwards(close: () => Promise<void>, then: () => Promise<void>): () => Promise<void> {
  return async () => {
    await close();
    await then();
  };
}
