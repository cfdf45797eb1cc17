/** A probability in three columns: `.97`, `1.0` from 0.995 on, `.00` below 0.005. */
export function shortProbability(probability: number): string {
  return probability >= 0.995 ? "1.0" : probability.toFixed(2).slice(1);
}

/** Three significant digits in at most five columns: `0.52`, `12.3`, `123`, `1.2k`, `3e8`. */
export function shortNumber(value: number): string {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (size === 0) return "0";
  if (size < 0.01 || size >= 999_500) return value.toExponential(0).replace("+", "");
  if (size < 9.995) return value.toFixed(2);
  if (size < 99.95) return value.toFixed(1);
  if (size < 999.5) return value.toFixed(0);
  return `${(value / 1000).toFixed(size < 9950 ? 1 : 0)}k`;
}
