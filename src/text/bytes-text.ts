/** Bytes as a person reads them. */
export function bytesText(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1000 ** step;
  return `${step === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${units[step]}`;
}
