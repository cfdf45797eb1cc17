/** A time span: `12 ms`, `3.4 s`, `2 min 5 s`, `3 h 20 min`. */
export function duration(seconds: number): string {
  const span = Math.max(0, seconds);
  if (span < 0.9995) return `${Math.round(span * 1000)} ms`;
  if (span < 59.95) return `${span.toFixed(span < 9.95 ? 1 : 0)} s`;
  const whole = Math.round(span);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(span / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  const hours = Math.round(span / 3600);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Elapsed time in the largest unit: `12 s ago`, `3 h ago`. */
export function ago(unixSeconds: number, now = Date.now() / 1000): string {
  const span = Math.max(0, now - unixSeconds);
  const [size, unit] = (
    [
      [86_400, "d"],
      [3600, "h"],
      [60, "min"],
    ] as const
  ).find(([least]) => span >= least) ?? [1, "s"];
  return `${Math.floor(span / size)} ${unit} ago`;
}

/** A number of bytes: `512 B`, `3.1 MB`, `24 GB`, in powers of ten. */
export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const step = count < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(count) / 3));
  const value = count / 1000 ** step;
  return `${step === 0 || value >= 99.5 ? Math.round(value) : value.toPrecision(2)} ${units[step]}`;
}
