import { lookup } from "node:dns/promises";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../contracts/user-error.js";

/** An rpc-server of llama.cpp, as it was named. */
export interface RpcServer {
  host: string;
  port: number;
}

/** What llama.cpp v0.5.0 speaks (ggml-rpc.h); it wants the same major version and no newer minor one. */
export const protocol = { major: 7, minor: 0 };
/** llama.cpp takes no more. */
const mostServers = 16;
const helloCommand = 14;
const capabilityBytes = 24;
const answerMs = 5000;
const pollMs = 1000;

/** Reads `host:port,host:port`. @throws UserError */
export function parseRpcServers(text: string): RpcServer[] {
  const servers = text.split(",").map((part) => {
    const [, host, port] = /^([A-Za-z0-9_.-]+):(\d{1,5})$/.exec(part.trim()) ?? [];
    if (host === undefined || Number(port) < 1 || Number(port) > 65535) {
      throw new UserError(
        `"${part.trim()}" is no rpc-server: each is host:port, several with commas between.`,
      );
    }
    return { host, port: Number(port) };
  });
  if (servers.length > mostServers) {
    throw new UserError(`${servers.length} rpc-servers were named; llama.cpp takes ${mostServers}.`);
  }
  if (new Set(servers.map(nameOf)).size < servers.length) {
    throw new UserError("An rpc-server is named twice; it serves one program at a time.");
  }
  return servers;
}

export const nameOf = ({ host, port }: RpcServer): string => `${host}:${port}`;

/**
 * Greets each server as llama.cpp will, because llama.cpp itself ends the process where it meets a closed door or
 * another version, and waits for ever where the server is busy with somebody else.
 * @returns their addresses for the addon, by number: names could grow too long for it
 * @throws UserError that names the server and what is wrong with it
 */
export async function reachRpcServers(servers: readonly RpcServer[]): Promise<string[]> {
  return Promise.all(
    servers.map(async (server) => {
      const { address } = await lookup(server.host, { family: 4 }).catch(() => {
        throw new UserError(`The rpc-server ${nameOf(server)} has no address: its name is not known.`);
      });
      await greet(server, address);
      return `${address}:${server.port}`;
    }),
  );
}

/** The same, for as long as it takes. @param onWait called once with what is being waited for */
export async function awaitRpcServers(
  servers: readonly RpcServer[],
  onWait: (sentence: string) => void,
): Promise<string[]> {
  for (let told = false; ; told = true) {
    try {
      return await reachRpcServers(servers);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      if (!told) onWait(`${error.message} The server waits for it.`);
      await sleep(pollMs);
    }
  }
}

/** Those of the servers that cannot be reached now. */
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
          : "accepts no more: it serves one program at a time, and another one holds it",
      ),
    );
    socket.on("error", (error: NodeJS.ErrnoException) =>
      fail(
        error.code === "ECONNREFUSED"
          ? "is not running: the connection is refused"
          : `cannot be reached (${error.code ?? error.message})`,
      ),
    );
    let answer = Buffer.alloc(0);
    socket.on("data", (part) => {
      answer = Buffer.concat([answer, part]);
      if (answer.length < 12) return;
      const [length, major, minor] = [answer.readBigUInt64LE(0), answer[8] as number, answer[9] as number];
      if (length !== BigInt(4 + capabilityBytes))
        return fail("speaks another language than llama.cpp's rpc-server");
      if (major !== protocol.major || minor > protocol.minor) {
        return fail(
          `speaks version ${major}.${minor} of the protocol, and this build ${protocol.major}.${protocol.minor}: ` +
            "both need the same llama.cpp (node scripts/build/tools.js rpc-server)",
        );
      }
      socket.destroy();
      resolve();
    });
    socket.on("end", () => fail("hung up on a greeting: another version, or another program"));
    const request = Buffer.alloc(9 + capabilityBytes);
    request[0] = helloCommand;
    request.writeBigUInt64LE(BigInt(capabilityBytes), 1);
    socket.write(request);
  });
}
