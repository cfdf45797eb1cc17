/**
 * Turns a compiler's output into progress that a person can follow: on a terminal one line that updates, in a
 * log one line every 10 %.
 * @param {{ stream: { write(text: string): unknown, isTTY?: boolean, columns?: number }, now?: () => number }} options
 */
export function createProgress({ stream, now = Date.now }) {
  const started = now();
  let shownTenth = 0;
  let shownAt = 0;
  let open = false;

  /** @param {number} fraction @param {string} position */
  function show(fraction, position) {
    const text = `tapline: compiling ${position}${Math.floor(fraction * 100)} %${timeLeft(fraction, now() - started)}`;
    if (stream.isTTY) {
      if (now() - shownAt < 100 && fraction < 1) {
        return;
      }
      shownAt = now();
      open = true;
      stream.write(`\r${text.slice(0, (stream.columns ?? 80) - 1)}\u001b[K`);
      return;
    }
    const tenth = Math.floor(fraction * 10);
    if (tenth > shownTenth) {
      shownTenth = tenth;
      stream.write(`${text}\n`);
    }
  }

  return {
    /** One line of Ninja's ([12/200] …), make's ([ 6%] …) or another tool's output. @param {string} line */
    line(line) {
      const ninja = /^\[(\d+)\/(\d+)\]/.exec(line);
      if (ninja) {
        const [done, total] = [Number(ninja[1]), Number(ninja[2])];
        // Re-running CMake and similar steps are builds of one or two steps before the real one.
        if (total > 2) {
          show(done / total, `[${done}/${total}] `);
        }
        return;
      }
      const make = /^\[ *(\d+)%\]/.exec(line);
      if (make) {
        show(Number(make[1]) / 100, "");
      }
    },
    /** Leaves the updating line, so that the next text starts on a new one. */
    end() {
      if (open) {
        stream.write("\r\u001b[K");
        open = false;
      }
    },
  };
}

/**
 * @param {number} fraction
 * @param {number} elapsed milliseconds
 */
function timeLeft(fraction, elapsed) {
  if (fraction < 0.1 || fraction >= 1 || elapsed < 5_000) {
    return "";
  }
  return `, ${duration((elapsed / fraction) * (1 - fraction))} left`;
}

/** @param {number} milliseconds */
export function duration(milliseconds) {
  const seconds = Math.round(milliseconds / 1000);
  return seconds < 90 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
