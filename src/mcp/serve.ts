import type { Writable } from "node:stream";
import type { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { lineOf } from "../text/hidden.js";

/**
 * Serves MCP over stdin and stdout until the client closes either, or `stopped` resolves.
 * @param factory creates a server for the connection
 * @param protocol the output stream from claimStdout
 */
export async function serveMcp(
  factory: () => McpServer | Promise<McpServer>,
  protocol: Writable,
  stopped: Promise<unknown>,
): Promise<void> {
  if (process.stdin.isTTY) {
    process.stderr.write(
      "tapline mcp is meant to be started by an agent's host, over stdin and stdout; press Ctrl-D to exit.\n",
    );
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
  // A client that only sent a signal still holds stdin open, which would keep this process alive.
  process.stdin.destroy();
}
