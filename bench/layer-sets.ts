/** Blocks that a capture reads, by how many: spread over the depth, without the last one. */
export function layerSets(nLayer: number): Record<string, number[]> {
  return {
    "1 layer": [Math.floor(nLayer / 2)],
    "4 layers": [0, 1, 2, 3].map((quarter) => Math.floor(((quarter + 0.5) * (nLayer - 1)) / 4)),
  };
}
