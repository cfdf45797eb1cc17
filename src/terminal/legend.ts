import type { Canvas } from "./canvas.js";
import { dim, onScale, type Scale } from "./paint.js";

/** The legend of a colour scale; empty without colours. */
export function legend(scale: Scale, low: string, high: string, canvas: Canvas): string {
  if (canvas.colors === "none") return "";
  const steps = 12;
  const strip = Array.from({ length: steps }, (_, index) =>
    onScale(" ", index / (steps - 1), scale, canvas.colors),
  );
  return `${dim(low, canvas.colors)} ${strip.join("")} ${dim(high, canvas.colors)}`;
}
