import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Milliseconds until the first probe, so that quick answers come without one, and the longest pause between two. */
const firstProbeMs = 100;
const longestPauseMs = 2000;
/** Zeros in a row before a chunk's size; some clients read at most 16 digits. */
const mostZeros = 8;

const framed = new WeakSet<ServerResponse>();

/** Marks a response whose handler writes the chunks' sizes itself, each chunk in one turn. */
export function framesItself(response: ServerResponse): void {
  framed.add(response);
}

/**
 * Answers clients that end their sending side after the request (`shutdown(SHUT_WR)`, `nc -N`). A client that closed its
 * connection looks the same until something is written to it: then its machine resets the connection, which closes the
 * response. So from the end on, probes are written until the answer is complete.
 */
export function answerHalfClosed(server: Server): void {
  // Not in Node's types: without it, Node ends a connection when its client does.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
  // Sockets from another process would end themselves.
  server.on("connection", (socket: Socket) => {
    socket.allowHalfOpen = true;
  });
  server.on("request", probeOnEnd);
}

function probeOnEnd({ socket, httpVersion }: IncomingMessage, response: ServerResponse): void {
  let timer: NodeJS.Timeout | undefined;
  const onEnd = () => {
    // HTTP/1.0 has no interim responses, so its clients count as gone.
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

/** Writes what changes nothing in the answer, wherever the answer is. A reset shows at the write after the one that caused it. */
function prober(socket: Socket, response: ServerResponse): () => void {
  let zeros = 0;
  let written = -1;
  return () => {
    // Pipelined responses wait for their turn; bytes that are still waiting are a probe themselves.
    if (response.socket === null || response.writableEnded || socket.writableLength > 0) return;
    if (!response.headersSent) {
      response.writeContinue();
      return;
    }
    response.flushHeaders(); // a head that is written with the first part of the body may still be here
    // Between two chunks: a leading zero of the next one's size.
    if (!response.chunkedEncoding && !framed.has(response)) return;
    if (socket.bytesWritten !== written) zeros = 0;
    if (zeros === mostZeros) return;
    zeros += 1;
    socket.write("0");
    written = socket.bytesWritten;
  };
}
