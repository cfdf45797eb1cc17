/** Maps a number of the data to pixels. */
export type Scale = (value: number) => number;

export function linear([low, high]: readonly [number, number], [from, to]: readonly [number, number]): Scale {
  return (value) => (high === low ? (from + to) / 2 : from + ((value - low) / (high - low)) * (to - from));
}

/** Both ends of the domain are above 0. */
export function logarithmic(domain: readonly [number, number], range: readonly [number, number]): Scale {
  const scale = linear([Math.log(domain[0]), Math.log(domain[1])], range);
  return (value) => scale(Math.log(value));
}

/** About `about` round numbers in a domain: multiples of 1, 2 or 5 times a power of ten. */
export function ticks([low, high]: readonly [number, number], about: number): number[] {
  const rough = (high - low) / Math.max(1, about);
  if (!(rough > 0) || !Number.isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough) as number;
  const found: number[] = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) found.push(at * step);
  return found;
}

/** At most about `about` powers of ten in a domain above 0; its ends if it contains none. */
export function powers([low, high]: readonly [number, number], about: number): number[] {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  if (first > last) return [low, high];
  const every = Math.max(1, Math.ceil((last - first + 1) / about));
  return Array.from(
    { length: Math.floor((last - first) / every) + 1 },
    (_, at) => 10 ** (first + at * every),
  );
}

/** A number on an axis: 6 significant digits, with an exponent only for many zeros. */
export function tickText(value: number): string {
  return String(Number(value.toPrecision(6)));
}
