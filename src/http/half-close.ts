import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Delay before the first probe, so that quick answers need none, and the longest pause between probes. */
const firstProbeMs = 100;
const longestPauseMs = 2000;
/** Most leading zeros of a chunk's size; some clients read at most 16 digits. */
const mostZeros = 8;

const framed = new WeakSet<ServerResponse>();

/** Marks a response whose handler frames its chunks itself, writing each chunk at once. */
export function framesItself(response: ServerResponse): void {
  framed.add(response);
}

/**
 * Answers clients that half-close the connection after the request (`shutdown(SHUT_WR)`, `nc -N`). A client that is gone
 * looks the same until something is written: then its machine resets the connection, which closes the response. So after
 * a half-close, probes are written until the response is complete.
 */
export function answerHalfClosed(server: Server): void {
  // Not in Node's types. Without it, Node closes a connection when the client half-closes it.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
  // Sockets from another process would otherwise close themselves.
  server.on("connection", (socket: Socket) => {
    socket.allowHalfOpen = true;
  });
  server.on("request", probeOnEnd);
}

function probeOnEnd({ socket, httpVersion }: IncomingMessage, response: ServerResponse): void {
  let timer: NodeJS.Timeout | undefined;
  const onEnd = () => {
    // HTTP/1.0 has no interim responses, so treat the client as gone.
    if (httpVersion === "1.0") {
      socket.end();
      return;
    }
    const probe = prober(socket, response);
    const next = (pause: number) => {
      timer = setTimeout(() => {
        probe();
        next(Math.min(2 * pause, longestPauseMs));
      }, pause);
    };
    next(firstProbeMs);
  };
  socket.once("end", onEnd);
  response.once("close", () => {
    socket.off("end", onEnd);
    clearTimeout(timer);
  });
}

/** Writes bytes that do not change the response, whatever its state. A reset is detected at the write after the one that caused it. */
function prober(socket: Socket, response: ServerResponse): () => void {
  let zeros = 0;
  let written = -1;
  return () => {
    // Skip pipelined responses that are not active yet; pending bytes are a probe themselves.
    if (response.socket === null || response.writableEnded || socket.writableLength > 0) return;
    if (!response.headersSent) {
      response.writeContinue();
      return;
    }
    response.flushHeaders(); // headers may still be buffered until the first part of the body
    // Between two chunks, write a leading zero of the next chunk's size.
    if (!response.chunkedEncoding && !framed.has(response)) return;
    if (socket.bytesWritten !== written) zeros = 0;
    if (zeros === mostZeros) return;
    zeros += 1;
    socket.write("0");
    written = socket.bytesWritten;
  };
}
