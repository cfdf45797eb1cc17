import type { Command } from "commander";
import { ports } from "../../contracts/limits.js";
import { UserError } from "../../contracts/user-error.js";
import { integerBetween } from "../options.js";
import { origin } from "../service-address.js";

/** `tapline ready`: waits for a service that was just started. */
export function registerReady(program: Command): void {
  program
    .command("ready")
    .description("Wait until a service is up.")
    .argument("[service]", "serve (default), lab, router, an address or a port", addressOf)
    .option(
      "--timeout <seconds>",
      "give up if nothing listens there for this long; loading a model does not count",
      integerBetween(1, 86_400),
      60,
    )
    .addHelpText(
      "after",
      `
Examples:
  tapline serve & tapline ready && tapline chat
  tapline lab --port 8123 & tapline ready 8123`,
    )
    .action(ready);
}

/** Pause between attempts, in milliseconds. */
const pauseMs = 100;

async function ready(url = addressOf("serve"), options: { timeout: number }): Promise<void> {
  const [
    { Transport },
    { TaplineError, TimeoutError },
    { setTimeout: sleep },
    { print },
    { endBy, stoppable },
  ] = await Promise.all([
    import("../../client/transport.js"),
    import("../../client/errors.js"),
    import("node:timers/promises"),
    import("../output.js"),
    import("../stop-signal.js"),
  ]);
  const http = new Transport(url, 10_000);
  const signal = stoppable();
  let seen = performance.now();
  try {
    for (;;) {
      try {
        await healthy();
        return await print(`${url} is ready.`);
      } catch (error) {
        signal.throwIfAborted();
        const status = error instanceof TaplineError ? error.status : undefined;
        if (!(error instanceof TaplineError || error instanceof TimeoutError)) throw error;
        if (status !== undefined && status !== 503) throw error;
        if (status !== undefined) seen = performance.now();
        if (performance.now() - seen > options.timeout * 1000) throw error;
        await sleep(pauseMs, undefined, { signal });
      }
    }
  } catch (error) {
    if (signal.aborted) return endBy(signal.reason);
    throw error;
  }

  /** Each service has its own health endpoint; something without either is not a tapline service. */
  async function healthy(): Promise<void> {
    for (const path of ["/health", "/lab/v1/health"]) {
      try {
        await http.json(path, { signal });
        return;
      } catch (error) {
        if (!(error instanceof TaplineError) || error.status !== 404) throw error;
      }
    }
    throw new UserError(`${url} is not a tapline service.`);
  }
}

/** @throws InvalidArgumentError */
function addressOf(service: string): string {
  switch (service) {
    case "serve":
      return origin(process.env.TAPLINE_URL ?? String(ports.inference));
    case "lab":
      return origin(process.env.TAPLINE_LAB_URL ?? String(ports.lab));
    case "router":
      return origin(String(ports.router));
    default:
      return origin(service);
  }
}
