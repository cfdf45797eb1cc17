import { Writable } from "node:stream";
import type { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";

/**
 * Speaks MCP over this process's stdin and stdout until the client closes either, or `stopped` resolves. From the
 * first moment on, stdout carries protocol lines only: whatever else writes to it lands on stderr.
 * @param factory makes a server for the connection
 */
export async function serveMcp(
  factory: () => McpServer | Promise<McpServer>,
  stopped: Promise<unknown>,
): Promise<void> {
  const { protocol, restore } = claimStdout();
  const ended = new Promise<void>((resolve) => {
    for (const event of ["end", "close", "error"]) process.stdin.once(event, () => resolve());
    protocol.once("close", () => resolve());
  });
  const handle = serveStdio(factory, {
    transport: new StdioServerTransport(process.stdin, protocol),
    onerror: (error) => process.stderr.write(`tapline mcp: ${oneLine(error.message)}\n`),
  });
  await Promise.race([ended, stopped]);
  await handle.close();
  // A client that only sent a signal still holds its end of stdin open; that must not keep this process.
  process.stdin.destroy();
  restore();
}

function claimStdout(): { protocol: Writable; restore: () => void } {
  const write = process.stdout.write;
  const protocol = new Writable({
    decodeStrings: false,
    write: (chunk, encoding, done) => void write.call(process.stdout, chunk, encoding, done),
  });
  protocol.on("error", () => {});
  process.stdout.on("error", (error) => protocol.destroy(error));
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof write;
  return {
    protocol,
    restore: () => {
      process.stdout.write = write;
    },
  };
}

function oneLine(text: string): string {
  return text.replace(/\p{C}+/gu, " ").slice(0, 500);
}
