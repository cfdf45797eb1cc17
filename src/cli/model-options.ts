import { InvalidArgumentError } from "commander";
import { parseRpcServers, type RpcServer } from "../models/rpc.js";

/** What `--model` takes. */
export const modelHelp =
  "demo, a .gguf file, a directory that holds one model, or a hub id: owner/name, owner/name:Q8_0, owner/name/file.gguf";

export const rpcHelp = "host:port,… of llama.cpp's rpc-servers that the layers are spread over";

/** A list of rpc-servers, for commander. */
export function rpcServers(text: string): RpcServer[] {
  try {
    return parseRpcServers(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}
