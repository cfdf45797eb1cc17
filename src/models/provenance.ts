import type { Provenance } from "../contracts/index.js";
import { version } from "../contracts/version.js";
import { canonicalHash } from "../formats/canonical-json.js";
import type { ResolvedModel } from "./resolve.js";

/** The request, as given by the caller. */
export interface RequestFacts {
  /** The whole request; its SHA-256 is taken over JSON with sorted keys. */
  config: unknown;
  model: string;
  revision: string | null;
  layers: readonly number[];
  seed: number;
}

/** The loaded model and the addon's backend. */
export interface ModelFacts {
  resolved: ResolvedModel;
  info: {
    readonly architecture: string;
    readonly quantization: string;
    readonly nLayer: number;
    readonly nEmbd: number;
    /** Devices that hold the blocks, if known. */
    readonly devices?: ReadonlyArray<{
      readonly name: string;
      readonly description: string;
      readonly host: boolean;
      readonly blocks: number;
    }>;
  };
  backend: {
    readonly backend: string;
    readonly llamaCpp: string;
    readonly devices: ReadonlyArray<{
      readonly kind: string;
      readonly name: string;
      readonly description: string;
    }>;
  };
}

/**
 * A result's provenance: request, files, versions and device.
 * @param seconds by stage
 */
export function provenance(
  { config, model, revision, layers, seed }: RequestFacts,
  { resolved, info, backend }: ModelFacts,
  seconds: Record<string, number>,
): Provenance {
  return {
    config_sha256: canonicalHash(config),
    seed,
    hook: "block output",
    input_mode: isOfTokens(config) ? "token ids" : "raw text",
    layers: [...layers],
    versions: {
      tapline: version,
      "llama.cpp": backend.llamaCpp,
      node: process.versions.node,
      backend: backend.backend,
    },
    requested_model: model,
    requested_revision: revision,
    resolved_model: { path: resolved.path, repository: resolved.repository, commit: resolved.commit },
    architecture: info.architecture,
    quantization: info.quantization,
    n_layer: info.nLayer,
    n_embd: info.nEmbd,
    weights: resolved.weights,
    seconds,
    device: placedText(info) ?? deviceText(backend),
  };
}

/** Whether a request gives token ids instead of a text. */
function isOfTokens(config: unknown): boolean {
  return typeof config === "object" && config !== null && "tokens" in config && config.tokens !== undefined;
}

/** Devices and their blocks. */
function placedText({ devices = [], nLayer }: ModelFacts["info"]): string | undefined {
  if (devices.length === 0) return undefined;
  return devices
    .map(({ name, description, blocks }) => {
      const what = name.startsWith("RPC") ? `rpc-server ${description}` : description || name;
      return blocks === nLayer ? what : `${what} (${blocks} of ${nLayer} blocks)`;
    })
    .join(", ");
}

function deviceText({ backend, devices }: ModelFacts["backend"]): string {
  // llama.cpp names the devices of rpc-servers RPC0, RPC1, …, and describes them by their address.
  const remote = devices.filter(({ name }) => name.startsWith("RPC"));
  const own = devices.filter(
    (device) => !remote.includes(device) && (backend === "cpu") === (device.kind === "cpu"),
  );
  const texts = [
    ...own.map(({ description, name }) => description || name),
    ...remote.map(({ description }) => `rpc-server ${description}`),
  ];
  return texts.join(", ") || backend;
}
