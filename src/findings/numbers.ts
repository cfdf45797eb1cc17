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

/** A probability or share in percent, with a readable number of digits. */
export function percent(share: number): string {
  const value = share * 100;
  if (value !== 0 && Math.abs(value) < 0.01) return value < 0 ? "> -0.01 %" : "< 0.01 %";
  if (value === 0 || value === 100) return `${value} %`;
  return `${Math.abs(value) >= 10 ? value.toFixed(1) : Number(value.toPrecision(2))} %`;
}

/**
 * The lower bound in bits of the entropy of a distribution whose most probable candidates are known: no other token is more
 * probable than the last of them.
 */
export function leastEntropy(probabilities: readonly number[]): number {
  const parts = probabilities.filter((part) => part > 0);
  const rest = 1 - parts.reduce((sum, part) => sum + part, 0);
  const ofParts = parts.reduce((sum, part) => sum - part * Math.log2(part), 0);
  return rest <= 0 ? ofParts : ofParts - rest * Math.log2(Math.min(rest, ...parts));
}

/** A number with 4 significant digits. */
export function figureOf(value: number): string {
  return Number(value.toPrecision(4)).toString();
}

/** A number with its sign. */
export function signed(value: number, digits = 3): string {
  const text = value.toFixed(digits);
  return value > 0 ? `+${text}` : text.replace(/^-(0\.0*)$/, "$1");
}

/** The decimals of differences that are at most `reach`: two, or more if two would write most of them as 0.00. */
export function differenceDigits(reach: number): number {
  return Math.max(2, Math.min(8, 1 - Math.floor(Math.log10(reach))));
}

/** A number with fixed decimals, and without the sign of a zero. */
export function fixed(value: number, digits: number): string {
  return value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1");
}

/** `1 token`, `2 tokens`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** A share in percent with fixed decimals, for columns of a table. */
export function percentTo(share: number, decimals: number): string {
  return `${(share * 100).toFixed(decimals)} %`;
}

/** The mean; NaN without values. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The mean of the known values; undefined if none is known. */
export function meanOfKnown(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : mean(known);
}

/** A model's size, as in model names: `1.5 M`, `494 M`, `7.2 B`. */
export function parametersText(count: number): string {
  const [unit, name] = count >= 1e9 ? [1e9, "B"] : [1e6, "M"];
  const value = count / (unit as number);
  return `${value >= 99.5 ? Math.round(value) : value.toPrecision(2)} ${name}`;
}
