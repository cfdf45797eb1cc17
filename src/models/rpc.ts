import { lookup } from "node:dns/promises";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../contracts/user-error.js";

/** The address of a llama.cpp rpc-server. */
export interface RpcServer {
  host: string;
  port: number;
}

/** Protocol of llama.cpp v0.5.0 (ggml-rpc.h), which requires the same major version and no newer minor one. */
export const protocol = { major: 7, minor: 0 };
/** llama.cpp's limit. */
const mostServers = 16;
const helloCommand = 14;
const capabilityBytes = 24;
const answerMs = 5000;
const pollMs = 1000;

/** Parses `host:port,host:port`. @throws UserError */
export function parseRpcServers(text: string): RpcServer[] {
  const servers = text.split(",").map((part) => {
    const [, host, port] = /^([A-Za-z0-9_.-]+):(\d{1,5})$/.exec(part.trim()) ?? [];
    if (host === undefined || Number(port) < 1 || Number(port) > 65535) {
      throw new UserError(`"${part.trim()}" is not a valid rpc-server: use host:port, separated by commas.`);
    }
    return { host, port: Number(port) };
  });
  if (servers.length > mostServers) {
    throw new UserError(`At most ${mostServers} rpc-servers are supported, got ${servers.length}.`);
  }
  if (new Set(servers.map(nameOf)).size < servers.length) {
    throw new UserError("An rpc-server is given twice; it serves one program at a time.");
  }
  return servers;
}

export const nameOf = ({ host, port }: RpcServer): string => `${host}:${port}`;

/**
 * Performs llama.cpp's handshake with each server first, because llama.cpp aborts the process if the connection is refused
 * or the version differs, and waits forever if the server is busy.
 * @returns their numeric addresses for the addon, which limits the length of names
 * @throws UserError with the server and the problem
 */
export async function reachRpcServers(servers: readonly RpcServer[]): Promise<string[]> {
  return Promise.all(
    servers.map(async (server) => {
      const { address } = await lookup(server.host, { family: 4 }).catch(() => {
        throw new UserError(`The rpc-server ${nameOf(server)} does not resolve to an address.`);
      });
      await greet(server, address);
      return `${address}:${server.port}`;
    }),
  );
}

/** The same, retrying until all servers are reachable. @param onWait called once with the reason for waiting */
export async function awaitRpcServers(
  servers: readonly RpcServer[],
  onWait: (sentence: string) => void,
): Promise<string[]> {
  for (let waiting = false; ; waiting = true) {
    try {
      return await reachRpcServers(servers);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      if (!waiting) onWait(`${error.message} Waiting for it.`);
      await sleep(pollMs);
    }
  }
}

/** The servers that are unreachable now. */
export async function lostRpcServers(servers: readonly RpcServer[]): Promise<string[]> {
  const found = await Promise.all(
    servers.map((server) =>
      reachRpcServers([server]).then(
        () => undefined,
        () => nameOf(server),
      ),
    ),
  );
  return found.filter((name) => name !== undefined);
}

function greet(server: RpcServer, address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port: server.port });
    const fail = (why: string) => {
      socket.destroy();
      reject(new UserError(`The rpc-server ${nameOf(server)} ${why}.`));
    };
    socket.setTimeout(answerMs, () =>
      fail(
        socket.connecting
          ? "does not answer"
          : "is busy: it serves one program at a time, and another one is using it",
      ),
    );
    socket.on("error", (error: NodeJS.ErrnoException) =>
      fail(
        error.code === "ECONNREFUSED"
          ? "is not running (connection refused)"
          : `is unreachable (${error.code ?? error.message})`,
      ),
    );
    let answer = Buffer.alloc(0);
    socket.on("data", (part) => {
      answer = Buffer.concat([answer, part]);
      if (answer.length < 12) return;
      const [length, major, minor] = [answer.readBigUInt64LE(0), answer[8] as number, answer[9] as number];
      if (length !== BigInt(4 + capabilityBytes))
        return fail("does not speak the protocol of llama.cpp's rpc-server");
      if (major !== protocol.major || minor > protocol.minor) {
        return fail(
          `speaks protocol version ${major}.${minor}, but this build speaks ${protocol.major}.${protocol.minor}: ` +
            "both need the same llama.cpp (node scripts/build/tools.js rpc-server)",
        );
      }
      socket.destroy();
      resolve();
    });
    socket.on("end", () =>
      fail("closed the connection during the handshake (another version or another program?)"),
    );
    const request = Buffer.alloc(9 + capabilityBytes);
    request[0] = helloCommand;
    request.writeBigUInt64LE(BigInt(capabilityBytes), 1);
    socket.write(request);
  });
}
