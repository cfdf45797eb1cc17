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
    .description("One address in front of many servers: each request goes where least work waits.")
    .option(
      "--backend <url>",
      "OpenAI-style server, e.g. http://127.0.0.1:8971; once for each",
      (url: string, before: string[] = []) => [...before, url],
    )
    .option("--config <file>", "JSON file that lists the backends; read again on SIGHUP")
    .option("--port <number>", "port; 0 takes any free one", integerBetween(0, 65535), ports.router)
    .option("--share", "share /v1 on the network; everything else stays on this machine")
    .addOption(keyOption())
    .addOption(corsOption())
    .option("--json-log", "write what happens as lines of JSON")
    .action(runRouter);
}

async function runRouter(options: RouterCommandOptions): Promise<void> {
  const { config, backend } = options;
  if ((config === undefined) === (backend === undefined)) {
    throw new UsageError("Name the backends: --backend URL for each, or --config FILE with all of them.");
  }
  let reread = () => {};
  const hadTerminal = hasTerminal();
  // A terminal that was closed sends the same signal as a person who has edited the file.
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
        `tapline: ${event.url} is healthy and serves ${event.models.join(", ") || "nothing"}.\n`,
      );
      return;
    case "aside":
      process.stderr.write(`tapline: ${event.url} is set aside: ${event.sentence}.\n`);
      return;
    case "configured":
      process.stderr.write(
        `tapline: the configuration was read again; it names ${counted(event.backends)}.\n`,
      );
      return;
    case "config-refused":
      process.stderr.write(`tapline: the configuration stays as it was. ${event.sentence}\n`);
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
