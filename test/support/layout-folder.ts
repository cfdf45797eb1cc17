/** The arrays of a file of weights. */
export type Arrays = Record<string, readonly [shape: readonly number[], values: readonly number[]]>;

/** The files of a published thing in memory: those of JSON, and those of weights. */
export function folder(
  json: Record<string, unknown>,
  weights: Record<string, Arrays>,
  metadata: Record<string, string> = {},
) {
  return {
    names: [...Object.keys(json), ...Object.keys(weights)],
    json: async (name: string) => json[name],
    text: async (name: string) => String(json[name]),
    tensors: async (name: string) => ({
      metadata,
      shapes: new Map(Object.entries(weights[name] as Arrays).map(([each, [shape]]) => [each, shape])),
      read: async (each: string): Promise<Float32Array> =>
        Float32Array.from(weights[name]?.[each]?.[1] ?? []),
    }),
  };
}

export type Folder = ReturnType<typeof folder>;
