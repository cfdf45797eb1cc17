import Type, { type Static, type TSchema } from "typebox";
import { defaults, limits } from "./limits.js";
import { modelPoints } from "./names.js";
import { optional } from "./optional.js";
import { Provenance } from "./provenance.js";
import { Candidate } from "./result-fields.js";

/** The body of `POST /lab/activations` on the inference server. */
export const CaptureRequest = Type.Object(
  {
    model: Type.String({ minLength: 1, description: "Exactly the model that the capabilities name." }),
    prompt: Type.String({
      pattern: "\\S",
      maxLength: limits.capture_prompt_characters,
      description: "Raw text, not blank.",
    }),
    layers: optional.Array(Type.Integer({ minimum: 0, maximum: limits.layer_index }), {
      minItems: 1,
      maxItems: limits.capture_layers,
      uniqueItems: true,
      default: [...defaults.layers],
    }),
    max_input_tokens: optional.Integer({
      minimum: 1,
      maximum: limits.capture_input_tokens,
      default: defaults.capture_input_tokens,
    }),
  },
  { additionalProperties: false, title: "CaptureRequest" },
);
export type CaptureRequest = Required<Static<typeof CaptureRequest>>;

export const CaptureResult = Type.Object(
  {
    tokens: Type.Array(Type.String()),
    token_ids: Type.Array(Type.Integer()),
    layers: Type.Array(Type.Object({ layer: Type.Integer(), norms: Type.Array(Type.Number()) })),
    next_tokens: Type.Array(Candidate),
    note: Type.String(),
    provenance: Provenance,
  },
  { title: "CaptureResult" },
);
export type CaptureResult = Static<typeof CaptureResult>;

const known = <S extends TSchema>(type: S) => Type.Union([type, Type.Null()]);

/** The answer of `GET /lab/capabilities` on the inference server. */
export const Capabilities = Type.Object(
  {
    serving_activations: Type.Boolean({
      description: "Whether captures of the resident model are possible.",
    }),
    model: known(Type.String()),
    fingerprint: optional.String({
      description: "Of the model's file: stored vectors and probes name the one they were made on.",
    }),
    max_layers: Type.Literal(limits.capture_layers),
    max_input_tokens: Type.Literal(limits.capture_input_tokens),
    n_layer: known(Type.Integer()),
    n_embd: known(Type.Integer()),
    architecture: known(Type.String()),
    backend: Type.String(),
    points: Type.Array(Type.Enum([...modelPoints]), {
      description:
        "Points that its blocks have, for experiments in a Lab; captures here are of block_out. Attention needs a context without flash attention, which the Lab's is.",
    }),
    pending: Type.Boolean({ description: "Whether a capture is waiting or running." }),
  },
  { title: "Capabilities" },
);
export type Capabilities = Static<typeof Capabilities>;
