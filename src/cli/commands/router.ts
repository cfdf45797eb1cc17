import { closeSync, openSync } from "node:fs";
import type { Command } from "commander";
import { ports } from "../../contracts/limits.js";
import type { BackendConfig } from "../../contracts/router.js";
import type { HealthEvent } from "../../router/index.js";
import { UsageError } from "../exit-code.js";
import { corsOption, integerBetween, keyOption } from "../options.js";
import { endBy, stopSignal } from "../stop-signal.js";

interface RouterCommandOptions {
  backend?: string[];
  config?: string;
  port: number;
  share?: boolean;
  apiKey?: string;
  cors?: string[];
  jsonLog?: boolean;
}

export function registerRouter(program: Command): void {
  program
    .command("router")
    .description("Route requests to several servers: each request goes to the least busy one.")
    .option(
      "--backend <url>",
      "OpenAI-compatible server, such as http://127.0.0.1:8971; repeatable",
      (url: string, before: string[] = []) => [...before, url],
    )
    .option("--config <file>", "JSON file with the backends; reloaded on SIGHUP")
    .option("--port <number>", "port; 0 picks a free port", integerBetween(0, 65535), ports.router)
    .option("--share", "share /v1 on the network; all other routes stay local to this machine")
    .addOption(keyOption())
    .addOption(corsOption())
    .option("--json-log", "log events as JSON lines")
    .action(runRouter);
}

async function runRouter(options: RouterCommandOptions): Promise<void> {
  const { config, backend } = options;
  if ((config === undefined) === (backend === undefined)) {
    throw new UsageError("Choose the backends with either --backend URL (repeatable) or --config FILE.");
  }
  let reread = () => {};
  const hadTerminal = hasTerminal();
  // Closing the terminal sends the same signal as a request to reload the file.
  const stopped = stopSignal(() => {
    if (config === undefined || (hadTerminal && !hasTerminal())) return false;
    reread();
    return true;
  });
  const { readConfig, startRouter } = await import("../../router/index.js");
  const backends = async (): Promise<BackendConfig[]> =>
    backend === undefined ? readConfig(config as string) : backend.map((url) => ({ url }));
  const report = options.jsonLog === true ? jsonLine : plainLine;
  const router = await startRouter({
    backends: await backends(),
    port: options.port,
    apiKey: options.apiKey,
    cors: options.cors,
    onEvent: report,
    ...(options.share === true ? { host: "0.0.0.0" } : {}),
  });
  reread = () => {
    backends()
      .then((next) =>
        router.configure(next).then(() => report({ event: "configured", backends: next.length })),
      )
      .catch((error: Error) => report({ event: "config-refused", sentence: error.message }));
  };
  const healthy = router.service.backends.filter(({ state }) => state === "healthy").length;
  report({ event: "ready", url: router.url, backends: router.service.backends.length, healthy });
  const signal = await stopped;
  await router.close();
  if (signal === "SIGHUP") endBy(signal);
}

type Event =
  | HealthEvent
  | { event: "ready"; url: string; backends: number; healthy: number }
  | { event: "configured"; backends: number }
  | { event: "config-refused"; sentence: string };

function plainLine(event: Event): void {
  switch (event.event) {
    case "ready":
      process.stdout.write(
        `tapline router is ready at ${event.url} (${event.healthy} of ${counted(event.backends)} healthy)\n`,
      );
      return;
    case "healthy":
      process.stderr.write(
        `tapline: ${event.url} is healthy; models: ${event.models.join(", ") || "none"}.\n`,
      );
      return;
    case "aside":
      process.stderr.write(`tapline: ${event.url} is unhealthy and gets no requests: ${event.sentence}.\n`);
      return;
    case "configured":
      process.stderr.write(`tapline: configuration reloaded: ${counted(event.backends)}.\n`);
      return;
    case "config-refused":
      process.stderr.write(`tapline: configuration not reloaded. ${event.sentence}\n`);
  }
}

function counted(backends: number): string {
  return backends === 1 ? "1 backend" : `${backends} backends`;
}

function jsonLine(event: Event): void {
  process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), ...event })}\n`);
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
