import type { Writable } from "node:stream";
import type { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { lineOf } from "../text/hidden.js";

/**
 * Speaks MCP over this process's stdin and stdout until the client closes either, or `stopped` resolves.
 * @param factory makes a server for the connection
 * @param protocol where protocol lines go, from claimStdout
 */
export async function serveMcp(
  factory: () => McpServer | Promise<McpServer>,
  protocol: Writable,
  stopped: Promise<unknown>,
): Promise<void> {
  if (process.stdin.isTTY) {
    process.stderr.write("tapline mcp speaks to an agent's host over stdin and stdout; Ctrl-D ends it.\n");
  }
  const ended = new Promise<void>((resolve) => {
    for (const event of ["end", "close", "error"]) process.stdin.once(event, () => resolve());
    protocol.once("close", () => resolve());
  });
  const handle = serveStdio(factory, {
    transport: new StdioServerTransport(process.stdin, protocol),
    onerror: (error) => process.stderr.write(`tapline mcp: ${lineOf(error.message).slice(0, 500)}\n`),
  });
  await Promise.race([ended, stopped]);
  await handle.close();
  // A client that only sent a signal still holds its end of stdin open; that must not keep this process.
  process.stdin.destroy();
}
