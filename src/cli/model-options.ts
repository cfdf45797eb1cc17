import { InvalidArgumentError } from "commander";
import { parseRpcServers, type RpcServer } from "../models/rpc.js";

/** Values of `--model`. */
export const modelHelp =
  "demo, a .gguf file, a directory with one model, or a hub id: owner/name, owner/name:Q8_0, owner/name/file.gguf";

export const rpcHelp = "host:port,… of llama.cpp rpc-servers across which to split the layers";

/** A list of names, for commander. */
export function deviceNames(text: string): string[] {
  const names = text.split(",").map((name) => name.trim());
  if (names.some((name) => name === "") || (names.length > 1 && names.includes("none"))) {
    throw new InvalidArgumentError('Write names separated by commas, such as "CUDA0,CUDA1", or "none".');
  }
  return names;
}

/** A list of rpc-servers, for commander. */
export function rpcServers(text: string): RpcServer[] {
  try {
    return parseRpcServers(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}
