import Type, { type Static } from "typebox";
import { orNull } from "./optional.js";

export const Provenance = Type.Object(
  {
    config_sha256: Type.String({ description: "SHA-256 of the configuration as JSON with sorted keys." }),
    seed: Type.Integer(),
    hook: Type.Literal("block output"),
    input_mode: Type.Enum(["raw text", "token ids"]),
    layers: Type.Array(Type.Integer()),
    versions: Type.Object(
      {
        tapline: Type.String(),
        "llama.cpp": Type.String(),
        node: Type.String(),
        backend: Type.String(),
      },
      { description: "Runtime versions." },
    ),
    requested_model: Type.String(),
    requested_revision: orNull(Type.String()),
    resolved_model: Type.Object({
      path: Type.String({ description: "File that was loaded." }),
      repository: orNull(Type.String()),
      commit: orNull(Type.String()),
    }),
    architecture: Type.String(),
    quantization: Type.String(),
    n_layer: Type.Integer(),
    n_embd: Type.Integer(),
    weights: Type.Array(
      Type.Object({
        name: Type.String(),
        bytes: Type.Integer(),
        modified_ns: Type.String({ description: "Nanoseconds since 1970, as decimal digits." }),
      }),
      { description: "Size and time of each weight file; not a checksum." },
    ),
    seconds: Type.Record(Type.String(), Type.Number(), { description: "Seconds by stage." }),
    device: Type.String(),
  },
  { title: "Provenance" },
);
export type Provenance = Static<typeof Provenance>;
