import { Writable } from "node:stream";

/**
 * Reserves stdout for the protocol; other output is redirected to stderr. Must be called before other modules are loaded,
 * so that none of their output reaches the client.
 */
export function claimStdout(): Writable {
  const write = process.stdout.write;
  const protocol = new Writable({
    write: (chunk, encoding, done) => void write.call(process.stdout, chunk, encoding, done),
  });
  protocol.on("error", () => {});
  process.stdout.on("error", (error) => protocol.destroy(error));
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof write;
  return protocol;
}
