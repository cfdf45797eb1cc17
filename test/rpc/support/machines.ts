import { execFileSync } from "node:child_process";

/** A network namespace with one address, and one cable to this machine: as good as another machine, for TCP. */
export interface Machine {
  /** Its address, reachable from here. */
  readonly host: string;
  /** The prefix of a command that is to run there. */
  readonly runs: string[];
  /** Pulls its cable out: nothing arrives any more, and no one is notified. */
  cut(): void;
  reconnect(): void;
  remove(): void;
}

const ip = (...words: string[]) => execFileSync("ip", words, { stdio: "pipe" });

/** @throws Error where the system, or this account, has no network namespaces */
export function addMachine(number: number): Machine {
  const name = `tapline-${process.pid}-${number}`;
  // Names of interfaces have 15 characters at most.
  const [here, there] = [`tp${process.pid}-${number}a`, `tp${process.pid}-${number}b`];
  // From 198.18.0.0/15, which is set aside for tests of networks.
  const [ours, host] = [1, 2].map((last) => `198.18.${process.pid % 256}.${4 * number + last}`);
  ip("netns", "add", name);
  try {
    ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", name);
    ip("address", "add", `${ours}/30`, "dev", here);
    ip("link", "set", here, "up");
    ip("-n", name, "address", "add", `${host}/30`, "dev", there);
    ip("-n", name, "link", "set", there, "up");
    ip("-n", name, "link", "set", "lo", "up");
  } catch (error) {
    ip("netns", "delete", name);
    throw error;
  }
  return {
    host: host as string,
    runs: ["ip", "netns", "exec", name],
    cut: () => void ip("link", "set", here, "down"),
    reconnect: () => void ip("link", "set", here, "up"),
    // Takes both ends of the cable with it.
    remove: () => void ip("netns", "delete", name),
  };
}
