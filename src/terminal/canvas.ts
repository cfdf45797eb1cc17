import { WriteStream } from "node:tty";
import type { LensView } from "../contracts/names.js";

export type Colors = "none" | "16" | "256" | "truecolor";

/** The properties of a terminal that pictures depend on. */
export interface Canvas {
  /** Maximum width of lines in columns, at least {@link narrowest}. */
  width: number;
  colors: Colors;
  /** The quantity in pictures of lenses; the top token by default. */
  lensView?: LensView | undefined;
}

/** Minimum width; narrower terminals are drawn with this width. */
export const narrowest = 24;

/** Width without a terminal: files, pipes and CI logs. */
const usualWidth = 100;

/** A stream for text. */
export interface Output {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

/** The canvas of an output stream. `COLUMNS` applies if the stream has no width. */
export function canvasOf(output: Omit<Output, "write">, env: NodeJS.ProcessEnv = process.env): Canvas {
  const columns = output.columns ?? Number(/^\d+$/.exec(env.COLUMNS ?? "")?.[0] ?? usualWidth);
  return { width: columns > 0 ? columns : usualWidth, colors: colorsOf(output, env) };
}

/**
 * The colours of an output. `FORCE_COLOR` (0 none, 1 or empty 16, 2 256, 3 truecolor) takes precedence, then a non-empty
 * `NO_COLOR`; otherwise a terminal gets the colours of its environment (`COLORTERM`, `TERM`, …) and other outputs get none.
 */
export function colorsOf(output: Omit<Output, "write">, env: NodeJS.ProcessEnv = process.env): Colors {
  const { NO_COLOR, ...others } = env;
  if (env.FORCE_COLOR === undefined && (NO_COLOR || !output.isTTY)) return "none";
  const depths: Record<number, Colors> = { 4: "16", 8: "256", 24: "truecolor" };
  return depths[WriteStream.prototype.getColorDepth(others)] ?? "none";
}
