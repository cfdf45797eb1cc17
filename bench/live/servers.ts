import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeControlVector } from "../../src/formats/control-vector.js";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { send } from "../../test/support/request.js";
import { type Row, row } from "../figures.js";
import { processorMs } from "../processor-time.js";
import type { Report } from "../report.js";
import { type BenchServer, type Settings, startLlamaServer, startTapline } from "../serve/servers.js";
import { type Beside, besideBase, type Round, type Variant } from "./beside.js";
import { streams } from "./engine.js";

interface ServerBench {
  /** llama-server's path. */
  tool: string;
  label: string;
  path: string;
  hidden: number;
  nLayer: number;
  architecture: string;
  tokens: number;
  seconds: number;
}

/**
 * Over HTTP: a server with plain requests compared with llama.cpp's own; 16 requests that choose profiles compared with
 * plain ones; and 16 requests steered each by a different vector compared with llama.cpp's own with one control vector for
 * all.
 */
export async function benchServers(bench: ServerBench, quick: boolean, report: Report): Promise<Row[]> {
  const { tool, label, path, hidden, nLayer, architecture, tokens, seconds } = bench;
  const home = await mkdtemp(join(tmpdir(), "tapline-bench-live-"));
  const settings: Settings = { path, slots: streams, slotContext: 256, batch: 512, threads: 2 };
  const servers: BenchServer[] = [];
  const started = async (starting: Promise<BenchServer>) => {
    const server = await starting;
    servers.push(server);
    return server;
  };
  const layer = Math.floor(nLayer / 2);
  const vector = (seed: number) =>
    Float32Array.from({ length: hidden }, (_, index) => Math.sin((seed + 1) * 12.9898 * (index + 1)));
  const measures = async (
    what: string,
    to: string,
    ours: Variant["run"],
    theirs: () => Promise<Round>,
    least?: number,
  ) => {
    for (const warm of [ours, theirs]) await warm();
    const variant = { [what]: { run: ours, ...(least !== undefined && { least }) } };
    const { speed, processor } = (await besideBase(theirs, variant, { seconds, quick })).get(what) as Beside;
    const name = `${label}, ${streams} streams over HTTP: ${what}`;
    const most = least === undefined ? {} : { most: Number((1 / least).toFixed(2)) };
    return [
      row(`${name}, tokens a second relative to ${to}`, speed, "x", least === undefined ? {} : { least }),
      // What other programs take from the processor hardly changes this one.
      ...(processor.length > 0
        ? [row(`${name}, processor time of a token relative to ${to}`, processor, "x", most)]
        : []),
    ];
  };
  try {
    const tapline = await started(startTapline(settings, { ...process.env, TAPLINE_HOME: home }));
    for (let stream = 0; stream < streams; stream += 2) {
      const file = encodeSafetensors({ [`layer_${layer}`]: { shape: [hidden], data: vector(stream) } }, {});
      const { status, body } = await send(`${tapline.url}/lab/vectors/v${stream}`, "PUT", file);
      if (status !== 200) throw new Error(JSON.stringify(body));
    }
    const control = join(home, "control.gguf");
    await writeFile(control, encodeControlVector(new Map([[layer, vector(0)]]), architecture));
    const llama = await started(startLlamaServer(tool, settings));
    const rows = report.rows(
      ...(await measures(
        "no edits or readings",
        "llama-server",
        () => round(tapline, tokens),
        () => round(llama, tokens),
        0.99,
      )),
    );
    report.stage(`${label}: profiles`);
    const { body: list } = await send(`${tapline.url}/v1/models`, "GET");
    const id = list.data[0].id as string;
    for (let stream = 0; stream < streams; stream += 2) {
      const profile = { tapline: { interventions: [steering(stream, layer)] } };
      const { status, body } = await send(`${tapline.url}/lab/profiles/p${stream}`, "PUT", profile);
      if (status !== 200) throw new Error(JSON.stringify(body));
    }
    const profiled = (stream: number) => ({ model: `${id}@p${stream}` });
    rows.push(
      ...report.rows(
        ...(await measures(
          "16 with a profile each",
          "plain",
          () => round(tapline, tokens, profiled),
          () => round(tapline, tokens),
          0.97,
        )),
      ),
    );
    const steered = await started(
      startLlamaServer(tool, settings, ["--control-vector-scaled", `${control}:0.01`]),
    );
    report.stage(`${label}: beside llama-server with one control vector`);
    rows.push(
      ...report.rows(
        ...(await measures(
          "16 steered at 1 layer",
          "llama-server with one control vector for all",
          () =>
            round(tapline, tokens, (stream) => ({ tapline: { interventions: [steering(stream, layer)] } })),
          () => round(steered, tokens),
        )),
      ),
    );
    return rows;
  } finally {
    for (const server of servers) await server.close();
    await rm(home, { recursive: true, force: true });
  }
}

function steering(stream: number, layer: number) {
  return { kind: "steer", vector: `v${stream}`, layer, strength: 0.05, strength_unit: "row_norm" };
}

/** All streams at once; every second one has the fields of `edited`, if given. */
async function round(
  { url, pid }: BenchServer,
  tokens: number,
  edited?: (stream: number) => object,
): Promise<Round> {
  const linux = process.platform === "linux";
  const spent = linux ? processorMs(pid) : 0;
  const start = performance.now();
  await Promise.all(
    Array.from({ length: streams }, async (_, stream) => {
      const { status, body } = await send(`${url}/v1/completions`, "POST", {
        prompt: `stream ${stream}: a b c d e f`,
        max_tokens: tokens,
        ignore_eos: true,
        temperature: 0,
        cache_prompt: false,
        ...(stream % 2 === 0 && edited?.(stream)),
      });
      if (status !== 200 || body.usage.completion_tokens !== tokens) throw new Error(JSON.stringify(body));
    }),
  );
  const count = streams * tokens;
  const seconds = (performance.now() - start) / 1000;
  return { speed: count / seconds, ...(linux && { processor: (processorMs(pid) - spent) / count }) };
}
