import { Writable } from "node:stream";

/**
 * Takes stdout for the protocol: from now on, whatever else writes to it lands on stderr. Called before anything
 * else is loaded, so that no module's greeting reaches the client.
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
