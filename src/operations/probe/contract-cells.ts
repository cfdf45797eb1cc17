import type { ProbeCell, ProbeGrid } from "./contract-grid.js";

interface Asked {
  layers: readonly number[];
  point?: ProbeCell["point"];
  grid?: ProbeGrid;
}

/** The cells of a grid: by point, position, layer and C. None without one. */
export function cellsOf({
  layers,
  point = "block_out",
  grid,
}: Asked): Pick<ProbeCell, "layer" | "point" | "position" | "c">[] {
  if (grid === undefined) return [];
  const { points = [point], positions = [-1], c: strengths = [1] } = grid;
  return points.flatMap((point) =>
    positions.flatMap((position) =>
      layers.flatMap((layer) => strengths.map((c) => ({ layer, point, position, c }))),
    ),
  );
}
