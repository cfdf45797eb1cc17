import type { DownloadProgress } from "../models/hub/index.js";
import { bytes, duration, ProgressLine } from "../terminal/index.js";

const barWidth = 24;
const everyMs = 100;

/**
 * Shows a download: share, bytes, network speed and remaining time. Speed excludes bytes from an earlier, interrupted
 * download and the time to read them.
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

/**
 * Runs work that may download, with a progress line. After a signal, it stops cleanly and keeps the bytes received so far.
 * @param stopped resolves with the signal
 * @param again the command that resumes the download
 * @returns undefined if it was stopped
 */
export async function downloading<T>(
  stopped: Promise<NodeJS.Signals>,
  again: string,
  work: (options: { signal: AbortSignal; onDownload: (progress: DownloadProgress) => void }) => Promise<T>,
): Promise<T | undefined> {
  const stop = new AbortController();
  const line = new ProgressLine(process.stderr);
  void stopped.then((signal) => stop.abort(signal));
  try {
    return await work({ signal: stop.signal, onDownload: downloadLine(line) });
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    line.clear();
    process.stderr.write(`tapline: Stopped. Run ${again} again to resume.\n`);
    process.exitCode = 1;
    return undefined;
  } finally {
    line.clear();
  }
}
