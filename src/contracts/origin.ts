/** Reads an origin as a browser sends it: scheme and host, nothing behind them. @throws Error for anything else */
export function readOrigin(text: string): string {
  if (text === "*") return text;
  const origin = URL.canParse(text) ? new URL(text) : undefined;
  if (origin === undefined || !/^https?:$/.test(origin.protocol) || origin.href !== `${origin.origin}/`) {
    throw new Error(`An origin looks like http://localhost:3000, or * for every one; got ${text}.`);
  }
  return origin.origin;
}
