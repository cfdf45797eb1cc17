import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** Settings that both servers get. */
export interface Settings {
  path: string;
  slots: number;
  slotContext: number;
  batch: number;
  threads: number;
}

export interface BenchServer {
  url: string;
  pid: number;
  model: string;
  close(): Promise<void>;
}

const cli = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

/** `tapline serve`, as a person starts it. */
export async function startTapline(settings: Settings, env = process.env): Promise<BenchServer> {
  const child = spawn(
    process.execPath,
    [
      ...["--import", "tsx", cli, "serve", "--json-log", "--port", "0", "--model", settings.path],
      ...["--parallel", `${settings.slots}`, "--ctx-size", `${settings.slotContext}`],
      ...["--batch", `${settings.batch}`, "--threads", `${settings.threads}`, "--no-embeddings"],
    ],
    { env, stdio: ["ignore", "pipe", "inherit"] },
  );
  for await (const line of createInterface({ input: child.stdout })) {
    const event = JSON.parse(line) as { event: string; url: string; info: { id: string } };
    if (event.event !== "ready") continue;
    child.stdout.resume();
    const models = (await (await fetch(`${event.url}/v1/models`)).json()) as { data: [{ id: string }] };
    return { url: event.url, pid: child.pid as number, model: models.data[0].id, close: () => end(child) };
  }
  throw new Error("tapline serve ended before it was ready.");
}

/** llama.cpp's own server, from the same source, with the same settings and whatever more is said. */
export async function startLlamaServer(
  tool: string,
  settings: Settings,
  more: readonly string[] = [],
): Promise<BenchServer> {
  const port = await freePort();
  const child = spawn(
    tool,
    [
      ...["-m", settings.path, "--host", "127.0.0.1", "--port", `${port}`, "--alias", "bench"],
      ...["-np", `${settings.slots}`, "-c", `${settings.slots * settings.slotContext}`, "--no-kv-unified"],
      ...["-b", `${settings.batch}`, "-ub", `${settings.batch}`, "-t", `${settings.threads}`],
      ...["--cache-ram", "512", "-fit", "off", "--log-disable", ...more],
    ],
    // Threads without work spin as briefly as tapline's (src/native/load.ts): spinning counts as processor time.
    { stdio: "ignore", env: { GOMP_SPINCOUNT: "4000", ...process.env } },
  );
  const url = `http://127.0.0.1:${port}`;
  for (let attempt = 0; attempt < 600; attempt++) {
    if (child.exitCode !== null) throw new Error(`llama-server ended with ${child.exitCode}.`);
    const ready = await fetch(`${url}/health`).then(
      (answer) => answer.ok,
      () => false,
    );
    if (ready) return { url, pid: child.pid as number, model: "bench", close: () => end(child) };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await end(child);
  throw new Error("llama-server was not ready within a minute.");
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
  await ended;
  clearTimeout(timer);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
