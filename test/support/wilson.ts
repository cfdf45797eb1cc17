import * as assert from "uvu/assert";

/** Wilson's ends solve |p - share| = 1.96 * sqrt(p (1 - p) / n): checked by that equation, not by the formula for its roots. */
export function isWilson({ low, high }: { low: number; high: number }, share: number, n: number): void {
  for (const p of [low, high]) {
    const away = Math.abs(p - share) - 1.959963984540054 * Math.sqrt((p * (1 - p)) / n);
    assert.ok(
      Math.abs(away) < 1e-9 || (p === share && (p === 0 || p === 1)),
      `${p} of ${share}, ${n}: ${away}`,
    );
  }
  assert.ok(low <= share && share <= high && low < high);
}
