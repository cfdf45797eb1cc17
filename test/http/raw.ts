import { connect } from "node:net";

/** Writes bytes to a port and gives everything that comes back until the connection ends. */
export function exchange(port: number, bytes: string | Buffer, host = "127.0.0.1"): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, host, () => socket.write(bytes));
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("error", reject);
    socket.on("close", () => resolve(Buffer.concat(chunks).toString()));
  });
}

/** A GET with exactly the given header lines, on a connection that the server is asked to close. */
export async function rawGet(
  port: number,
  target: string,
  headers: string[],
): Promise<{ status: number; body: string }> {
  const text = await exchange(
    port,
    `GET ${target} HTTP/1.1\r\n${[...headers, "Connection: close"].join("\r\n")}\r\n\r\n`,
  );
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
  return { status, body: text.slice(text.indexOf("\r\n\r\n") + 4) };
}
