import type { DownloadProgress } from "../models/hub/index.js";
import { bytes, duration, type ProgressLine } from "../terminal/index.js";

const barWidth = 24;
const everyMs = 100;

/** Draws a download into a line of the terminal: share, bytes, speed and what is left. */
export function downloadLine(line: ProgressLine): (progress: DownloadProgress) => void {
  let first: { at: number; done: number } | undefined;
  let shown = 0;
  return ({ file, done, total }) => {
    const now = performance.now();
    first ??= { at: now, done };
    if (now - shown < everyMs && done < total) return;
    shown = now;
    const seconds = (now - first.at) / 1000;
    const speed = seconds > 0.5 ? (done - first.done) / seconds : 0;
    const share = total === 0 ? 1 : done / total;
    const full = Math.round(share * barWidth);
    const left = speed > 0 && done < total ? `, ${duration((total - done) / speed)} left` : "";
    line.show(
      `${"█".repeat(full)}${"░".repeat(barWidth - full)} ${Math.floor(share * 100)} %  ` +
        `${bytes(done)} of ${bytes(total)}${speed > 0 ? `, ${bytes(speed)}/s` : ""}${left}  ${file}`,
    );
  };
}
