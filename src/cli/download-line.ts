import type { DownloadProgress } from "../models/hub/index.js";
import { bytes, duration, type ProgressLine } from "../terminal/index.js";

const barWidth = 24;
const everyMs = 100;

/**
 * Tells a download: share, bytes, speed and what is left. Speed is that of the network: bytes that were here before, and
 * the time that it takes to read them, are no part of it.
 */
export function downloadLine(
  line: Pick<ProgressLine, "show" | "log">,
  clock = () => performance.now(),
): (progress: DownloadProgress) => void {
  let first: { at: number; received: number } | undefined;
  let shown = 0;
  return ({ file, done, total, received }) => {
    const now = clock();
    if (received > 0) first ??= { at: now, received };
    if (now - shown < everyMs && done < total) return;
    shown = now;
    const seconds = first === undefined ? 0 : (now - first.at) / 1000;
    const speed = first !== undefined && seconds > 0.5 ? (received - first.received) / seconds : 0;
    const share = total === 0 ? 1 : done / total;
    const full = Math.round(share * barWidth);
    const left = speed > 0 && done < total ? `, ${duration((total - done) / speed)} left` : "";
    const words =
      `${Math.floor(share * 100)} %  ` +
      `${bytes(done)} of ${bytes(total)}${speed > 0 ? `, ${bytes(speed)}/s` : ""}${left}  ${file}`;
    line.show(`${"█".repeat(full)}${"░".repeat(barWidth - full)} ${words}`);
    line.log(`${file} ${done >= total}`, `downloading ${words}`);
  };
}
