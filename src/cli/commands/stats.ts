import type { Command } from "commander";
import type { RouterStats } from "../../contracts/router.js";
import type { Stats } from "../../contracts/stats.js";
import { type ServerOptions, serverCommand, serverTools } from "../server-command.js";

/** `tapline stats`: a server's requests, speed, latency and memory. */
export function registerStats(program: Command): void {
  serverCommand(program, "stats", "Show a running server's requests, speed, latency and memory.")
    .addHelpText("after", "\nExamples:\n  tapline stats\n  tapline stats --json | jq .latency_ms")
    .action(stats);
}

async function stats(options: ServerOptions): Promise<void> {
  const { Transport, terminal, print, printJson } = await serverTools();
  const answer = await new Transport(options.url, 10_000, { service: "serve" }).json<Stats | RouterStats>(
    "/stats",
  );
  if (options.json) return printJson(answer);
  const canvas = terminal.canvasOf(process.stdout);
  // Routers report backends, servers a model.
  const picture =
    "backends" in answer
      ? terminal.routerStatsPicture(answer, canvas)
      : terminal.statsPicture(answer, canvas);
  return print(picture.join("\n"));
}
