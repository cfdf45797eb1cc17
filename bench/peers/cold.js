/**
 * A process that does nothing but load a model and capture once, on the compiled package as it is installed:
 * `node cold.js MODEL THREADS gpu|processor < TASK`, the answer as a line.
 */
import { readFileSync } from "node:fs";

// Compiled, so absent for programs that only read types.
const { Model } = await import(new URL("../../dist/native/index.js", import.meta.url).href);
const [path, threads, place] = process.argv.slice(2);
const { tokens, layers } = JSON.parse(readFileSync(0, "utf8"));
const model = await Model.open(path, place === "gpu" ? {} : { gpuLayers: 0 });
const context = await model.createContext({ nCtx: 256, nBatch: 256, threads: Number(threads) });
const found = await context.advance({ tokens: Int32Array.from(tokens), layers, nextTopK: 5 });
const [, kilobytes] = /VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
const peak = Number(kilobytes) * 1024;
const { user, system } = process.cpuUsage();
const spent = { seconds: 0, processor: 0, in_all: (user + system) / 1e6 };
const norms = found.layers.map((/** @type {{ norms: Float32Array }} */ { norms }) => norms.at(-1));
process.stdout.write(`${JSON.stringify({ ...spent, peak, norms, next: found.next.tokenIds[0] })}\n`);
await model.close();
