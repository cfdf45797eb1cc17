import type { Command } from "commander";
import { serverOption } from "./service-address.js";

export interface ServerOptions {
  url: string;
  json?: boolean;
}

/** A command that queries a running `tapline serve`. */
export function serverCommand(program: Command, name: string, description: string): Command {
  return program
    .command(name)
    .description(description)
    .addOption(serverOption())
    .option("--json", "print the server's response as JSON");
}

/** Modules of these commands, loaded when one runs. */
export async function serverTools() {
  const [{ Transport }, terminal, { oneLine }, { print, printJson }, { TaplineError }] = await Promise.all([
    import("../client/transport.js"),
    import("../terminal/index.js"),
    import("../findings/text.js"),
    import("./output.js"),
    import("../client/errors.js"),
  ]);
  return { Transport, terminal, oneLine, print, printJson, TaplineError };
}
