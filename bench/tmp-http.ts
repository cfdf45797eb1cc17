import { buildTools } from "../scripts/build/tools.js";
import { send } from "../test/support/request.js";
import { randomModel } from "./models/random-model.js";
import { processorMs, withChildren } from "./processor-time.js";
import { startLlamaServer, startTapline } from "./serve/servers.js";
import { median } from "./figures.js";
const rounds = Number(process.argv[2] ?? 5), tokens = Number(process.argv[3] ?? 16), stream = process.argv[4] === "stream";
const path = process.env.MODEL ?? await randomModel("q8_0");
const { "llama-server": tool } = await buildTools(["llama-server"]) as Record<string,string>;
const settings = { path, slots: 32, slotContext: 256, batch: 512, threads: 2 };
const ours = await startTapline(settings);
const theirs = await startLlamaServer(tool!, settings);
async function round({url,pid}: {url:string,pid:number}) {
  const spent = processorMs(pid), start = performance.now();
  await Promise.all(Array.from({length: 32}, async (_, i) => {
    const { status, body } = await send(`${url}/v1/completions`, "POST", { prompt: `stream ${i}: a b c d e f`, max_tokens: tokens, ignore_eos: true, temperature: 0, cache_prompt: false });
    if (status !== 200 || body.usage.completion_tokens !== tokens) throw new Error(JSON.stringify(body));
  }));
  return { wall: performance.now() - start, cpu: processorMs(pid) - spent };
}
await round(ours); await round(theirs); await round(ours); await round(theirs);
const cpu: number[] = [], wall: number[] = [], abs: number[][] = [];
for (let i = 0; i < rounds; i++) {
  const a = await round(theirs), b = await round(ours), c = await round(theirs);
  cpu.push(2 * b.cpu / (a.cpu + c.cpu)); wall.push((a.wall + c.wall) / 2 / b.wall);
  abs.push([b.cpu, (a.cpu + c.cpu)/2, b.wall, (a.wall+c.wall)/2]);
  console.log(abs.at(-1)!.map((v) => v.toFixed(0)).join(" "), cpu.at(-1)!.toFixed(3), wall.at(-1)!.toFixed(3));
}
console.log("cpu", median(cpu).toFixed(4), "speed", median(wall).toFixed(4));
for (const p of withChildren(ours.pid)) console.log(p, processorMs(p));
await ours.close(); await theirs.close();
