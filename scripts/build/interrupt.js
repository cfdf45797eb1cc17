const signals = /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]);

/**
 * Cleans up when this process is interrupted, which `finally` does not see; the process then ends by that signal.
 * @param {() => void} clean
 * @returns {() => void} ends the watch
 */
export function onInterrupt(clean) {
  /** @param {NodeJS.Signals} signal */
  const handler = (signal) => {
    clean();
    stop();
    process.kill(process.pid, signal);
  };
  const stop = () => {
    for (const signal of signals) process.off(signal, handler);
  };
  for (const signal of signals) process.on(signal, handler);
  return stop;
}
