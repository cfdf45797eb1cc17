import { createHash } from "node:crypto";
import type { Config, Provenance } from "../contracts/index.js";
import { version } from "../contracts/version.js";
import type { ResolvedModel } from "../models/resolve.js";
import type { BackendInfo, ModelInfo } from "../native/index.js";

/** Where a result comes from: what was asked, of which files, with which versions, on which device. */
export function provenance(
  config: Config,
  resolved: ResolvedModel,
  info: ModelInfo,
  backend: BackendInfo,
  seconds: Record<string, number>,
): Provenance {
  return {
    config_sha256: createHash("sha256").update(canonicalJson(config)).digest("hex"),
    seed: config.seed,
    hook: "block output",
    input_mode: "raw text",
    layers: config.layers,
    versions: {
      tapline: version,
      "llama.cpp": backend.llamaCpp,
      node: process.versions.node,
      backend: backend.backend,
    },
    requested_model: config.model,
    requested_revision: config.revision ?? null,
    resolved_model: { path: resolved.path, repository: resolved.repository, commit: resolved.commit },
    architecture: info.architecture,
    quantization: info.quantization,
    n_layer: info.nLayer,
    n_embd: info.nEmbd,
    weights: resolved.weights,
    seconds,
    device: deviceText(backend),
  };
}

/** JSON with sorted keys and no spaces: equal values give equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, entry: unknown) =>
    typeof entry === "object" && entry !== null && !Array.isArray(entry)
      ? Object.fromEntries(Object.entries(entry).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : entry,
  );
}

function deviceText(backend: BackendInfo): string {
  const wanted = backend.devices.filter(({ kind }) =>
    backend.backend === "cpu" ? kind === "cpu" : kind !== "cpu",
  );
  return wanted.map(({ description, name }) => description || name).join(", ") || backend.backend;
}
