/** The processes that the router's suite measures: a server, the router, nginx. */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { send } from "../../test/support/request.js";
import { withChildren } from "../processor-time.js";

export interface Measured {
  readonly url: string;
  /** Processor time that it and its children have used, in milliseconds. */
  cpuMs(): number;
  end(): Promise<void>;
}

const command = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

/** A model behind `tapline serve`. */
export function startServing(model: string, words: string[]): Promise<Measured> {
  return startTapline(["serve", "--model", model, ...words]);
}

/** `tapline router` in front of one backend. */
export function startRouting(backend: string): Promise<Measured> {
  return startTapline(["router", "--backend", backend]);
}

/** Debian's nginx as a plain proxy: one worker, kept connections, nothing buffered, nothing logged. */
export async function startNginx(backend: string): Promise<Measured> {
  const folder = await mkdtemp(join(tmpdir(), "tapline-nginx-"));
  const port = await freePort();
  const account = process.getuid?.() === 0 ? "user root;" : "";
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((kind) => `${kind}_temp_path ${folder}/${kind};`)
    .join(" ");
  await writeFile(
    join(folder, "nginx.conf"),
    `${account} daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 1024; }
http {
  access_log off; ${paths}
  upstream model { server ${new URL(backend).host}; keepalive 64; }
  server {
    listen 127.0.0.1:${port};
    client_max_body_size 16m;
    location / {
      proxy_pass http://model; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_read_timeout 600s;
    }
  }
}
`,
  );
  const child = spawn("nginx", ["-p", folder, "-c", join(folder, "nginx.conf")], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  const failed = new Promise<never>((_, reject) => {
    child.once("error", () =>
      reject(new Error("nginx is not installed; on Debian: apt-get install nginx-light.")),
    );
  });
  const url = `http://127.0.0.1:${port}`;
  await Promise.race([answering(url), failed]);
  const measured = watched(child, url);
  return {
    ...measured,
    end: async () => {
      await measured.end();
      await rm(folder, { recursive: true });
    },
  };
}

async function startTapline(words: string[]): Promise<Measured> {
  const child = spawn(process.execPath, ["--import", "tsx", command, ...words, "--port", "0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout?.on("data", (chunk) => {
      text += chunk;
      const found = /is ready at (\S+)/.exec(text);
      if (found !== null) resolve(found[1] as string);
    });
    child.once("exit", () => reject(new Error(`tapline ${words[0]} ended before it was ready.`)));
  });
  return watched(child, url);
}

function watched(child: ChildProcess, url: string): Measured {
  const pid = child.pid as number;
  return {
    url,
    cpuMs: () => withChildren(pid).reduce((sum, one) => sum + threadMs(one), 0),
    end: async () => {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await gone;
    },
  };
}

/** The kernel's count of a process, in nanoseconds, over all its threads. */
function threadMs(pid: number): number {
  return readdirSync(`/proc/${pid}/task`)
    .map(
      (thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]) / 1e6,
    )
    .reduce((sum, ms) => sum + ms, 0);
}

async function answering(url: string): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const answer = await send(`${url}/v1/models`, "GET").catch(() => null);
    if (answer?.status === 200) return;
    await sleep(50);
  }
  throw new Error(`Nothing answers at ${url}.`);
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
