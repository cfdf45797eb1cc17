/**
 * Every architecture of llama.cpp's own test models, once on this machine and once spread over two rpc-servers on
 * loopback: block outputs, an edit, the logit lens and the next tokens have to be the same numbers.
 *   node --import tsx test/verify/split.ts
 */
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildTools } from "../../scripts/build/tools.js";
import { nameOf } from "../../src/models/rpc.js";
import { connectRemotes, Model } from "../../src/native/index.js";
import { startRpcServer } from "../rpc/support/rpc-server.js";

const tokens = Int32Array.from([5, 9, 13, 21]);

/** A model's results, as text; or the reason for none, where its blocks are not known. */
async function fingerprint(path: string): Promise<string> {
  const model = await Model.open(path);
  try {
    const context = await model.createContext({ nCtx: 64, threads: 1 });
    if (!context.blockOutputs.supported) return `not captured: ${context.blockOutputs.reason}`;
    const pass = await context.advance({
      tokens,
      layers: [0, model.info.nLayer - 1],
      nextTopK: 5,
      ...(context.lens.supported && { lensTopK: 3 }),
    });
    await context.reset();
    const edits = [{ layer: 0, position: tokens.length - 1, scale: 0.5 }];
    const edited = await context.advance({ tokens, layers: [0], edits, nextTopK: 5 });
    return JSON.stringify([
      pass.layers.map(({ states, lens }) => [
        [...states!.data],
        lens && [[...lens.tokenIds], [...lens.probabilities]],
      ]),
      [[...pass.next!.tokenIds], [...pass.next!.probabilities]],
      [[...edited.next!.tokenIds], [...edited.next!.probabilities]],
    ]);
  } finally {
    await model.close();
  }
}

const folder = await mkdtemp(join(tmpdir(), "tapline-split-"));
const servers = [await startRpcServer(), await startRpcServer()];
try {
  const { "test-llama-archs": maker } = await buildTools(["test-llama-archs"]);
  spawnSync(maker as string, ["-o", folder], { stdio: "ignore" });
  const names = (await readdir(folder)).filter((name) => name.endsWith(".gguf")).sort();
  if (names.length === 0) throw new Error("test-llama-archs wrote no models.");
  const alone = new Map<string, string>();
  for (const name of names) alone.set(name, await fingerprint(join(folder, name)));
  await connectRemotes(servers.map(nameOf));
  const counts = { same: 0, different: 0, "not captured": 0 };
  for (const name of names) {
    const [here, split] = [alone.get(name), await fingerprint(join(folder, name))];
    const kind = here !== split ? "different" : here?.startsWith("not captured") ? "not captured" : "same";
    counts[kind]++;
    if (kind === "different") console.log(`${name}: ${split.slice(0, 200)}`);
  }
  console.log(`${names.length} models: ${JSON.stringify(counts)}`);
  if (counts.different > 0) process.exitCode = 1;
} finally {
  for (const server of servers) await server.kill();
  await rm(folder, { recursive: true, force: true });
}
