import type { Canvas } from "../terminal/canvas.js";
import type { ConfigOf, Operation, ResultOf } from "./contracts.js";

/** An operation's jobs in the terminal. */
export interface Picture<O extends Operation> {
  /** The request, apart from job and model: labelled lines. */
  asked(config: ConfigOf<O>): [label: string, text: string][];
  /** The result. */
  draw(result: ResultOf<O>, canvas: Canvas, config: ConfigOf<O>): string[];
}

/** The selected blocks in words. */
export function layersText({ layers }: { layers: readonly number[] }): string {
  return `${layers.length === 1 ? "layer" : "layers"} ${layers.join(", ")}`;
}
