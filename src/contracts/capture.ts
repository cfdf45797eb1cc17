import Type, { type Static } from "typebox";
import { forwardLimits } from "./forward-limits.js";
import { defaults, limits } from "./limits.js";
import { modelPoints } from "./names.js";
import { optional, orNull } from "./optional.js";
import { Provenance } from "./provenance.js";
import { Candidate } from "./result-fields.js";

/** The body of `POST /lab/activations` on the inference server. */
export const CaptureRequest = Type.Object(
  {
    model: Type.String({
      minLength: 1,
      description: "The model's id, exactly as GET /lab/capabilities lists it.",
    }),
    prompt: Type.String({
      pattern: "\\S",
      maxLength: limits.capture_prompt_characters,
      description: "Raw text; must not be blank.",
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

/** The answer of `GET /lab/capabilities` on the inference server. */
export const Capabilities = Type.Object(
  {
    serving_activations: Type.Boolean({
      description: "Whether the resident model supports captures.",
    }),
    model: orNull(Type.String()),
    fingerprint: optional.String({
      description:
        "Fingerprint of the model's file; saved vectors and probes record the one they were made on.",
    }),
    max_layers: Type.Literal(limits.capture_layers),
    max_input_tokens: Type.Literal(limits.capture_input_tokens),
    n_layer: orNull(Type.Integer()),
    n_embd: orNull(Type.Integer()),
    architecture: orNull(Type.String()),
    backend: Type.String(),
    chat_template: optional.Boolean({
      description:
        "Whether the model has a chat template. Without one, chat completions continue the messages' raw texts.",
    }),
    points: Type.Array(Type.Enum([...modelPoints]), {
      description:
        "Points of the model's blocks that Lab experiments can read; captures here read block_out. `attention` needs a context without flash attention, which the Lab uses.",
    }),
    forward: optional(
      Type.Object(
        {
          sequences: Type.Literal(forwardLimits.sequences),
          sequence_tokens: Type.Integer({ description: "Of one sequence." }),
          bytes: Type.Literal(forwardLimits.bytes, { description: "Of one result." }),
        },
        { description: "Limits of POST /lab/forward." },
      ),
    ),
    pending: Type.Boolean({ description: "Whether a capture is queued or running." }),
  },
  { title: "Capabilities" },
);
export type Capabilities = Static<typeof Capabilities>;
