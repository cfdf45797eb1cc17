import Type, { type Static } from "typebox";

const Shape = Type.Array(Type.Integer(), { description: "NumPy's order: the length of a row last." });

/** The answer of `GET /lab/weights` on the inference server. */
export const WeightList = Type.Object(
  {
    metadata: Type.Record(
      Type.String(),
      Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]),
      {
        description: "The GGUF file's strings, numbers and flags; null for numbers that are not finite.",
      },
    ),
    tensors: Type.Array(
      Type.Object({
        name: Type.String(),
        shape: Shape,
        type: Type.Integer({ description: "ggml's number of the type in the file." }),
      }),
    ),
  },
  { title: "WeightList" },
);
export type WeightList = Static<typeof WeightList>;

/** The body of `POST /lab/weights`. */
export const WeightsRequest = Type.Object(
  {
    tensors: Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
      minItems: 1,
      maxItems: 1024,
      uniqueItems: true,
      description: "Names from GET /lab/weights.",
    }),
  },
  { additionalProperties: false, title: "WeightsRequest" },
);
export type WeightsRequest = Static<typeof WeightsRequest>;

/** Its answer. */
export const WeightFiles = Type.Object(
  {
    files: Type.Array(
      Type.Object({
        name: Type.String(),
        path: Type.String({
          description: "A .npy file on this machine, float32; the server does not delete it.",
        }),
        shape: Shape,
      }),
    ),
  },
  { title: "WeightFiles" },
);
export type WeightFiles = Static<typeof WeightFiles>;
