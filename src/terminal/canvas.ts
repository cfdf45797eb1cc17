import { WriteStream } from "node:tty";
import type { LensView } from "../contracts/names.js";

export type Colors = "none" | "16" | "256" | "truecolor";

/** Where a picture is drawn: nothing else about the terminal matters to it. */
export interface Canvas {
  /** Columns; no line of a picture is wider. Pictures need at least {@link narrowest}. */
  width: number;
  colors: Colors;
  /** What the pictures of lenses show; the top token unless told otherwise. */
  lensView?: LensView | undefined;
}

/** Fewer columns than this are drawn as if they were this many. */
export const narrowest = 24;

/** Width where the terminal does not tell: files, pipes and CI logs. */
const usualWidth = 100;

interface Output {
  isTTY?: boolean;
  columns?: number;
}

/** The canvas that an output stream offers. `COLUMNS` counts where the stream knows no width. */
export function canvasOf(output: Output, env: NodeJS.ProcessEnv = process.env): Canvas {
  const columns = output.columns ?? Number(/^\d+$/.exec(env.COLUMNS ?? "")?.[0] ?? usualWidth);
  return { width: columns > 0 ? columns : usualWidth, colors: colorsOf(output, env) };
}

/**
 * How many colours an output takes. `FORCE_COLOR` (0 none, 1 or empty 16, 2 256, 3 truecolor) decides where it is
 * set, then a `NO_COLOR` that is not empty; otherwise a terminal gets what its environment says (`COLORTERM`,
 * `TERM`, …) and everything else gets none.
 */
export function colorsOf(output: Output, env: NodeJS.ProcessEnv = process.env): Colors {
  const { NO_COLOR, ...others } = env;
  if (env.FORCE_COLOR === undefined && (NO_COLOR || !output.isTTY)) return "none";
  const depths: Record<number, Colors> = { 4: "16", 8: "256", 24: "truecolor" };
  return depths[WriteStream.prototype.getColorDepth(others)] ?? "none";
}
