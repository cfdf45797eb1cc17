import type { Candidate } from "../contracts/index.js";
import { width } from "../findings/text.js";
import { visible } from "../text/visible.js";
import { type Canvas, narrowest } from "./canvas.js";
import { fit } from "./fit.js";
import { inScale, probabilityScale } from "./paint.js";

const eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/** Candidates for the next token as bars; a full bar is probability 1. */
export function bars(candidates: readonly Candidate[], canvas: Canvas): string {
  const total = Math.max(narrowest, canvas.width);
  const names = candidates.map(({ token }) => visible(token));
  const label = Math.min(Math.max(1, ...names.map(width)), Math.floor(total / 3));
  // Around the bar: a space after the label, and " 0.974".
  const room = Math.min(60, total - label - 7);
  return candidates
    .map(({ probability }, index) => {
      const drawn = inScale(bar(probability, room), 0.62, probabilityScale, canvas.colors);
      return `${fit(names[index] as string, label)} ${drawn} ${probability.toFixed(3)}`;
    })
    .join("\n");
}

function bar(share: number, room: number): string {
  const steps = Math.round(Math.min(1, Math.max(0, share)) * room * 8);
  return "█".repeat(Math.floor(steps / 8)) + (eighths[steps % 8] as string);
}
