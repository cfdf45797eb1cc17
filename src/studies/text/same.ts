import { createHash, timingSafeEqual } from "node:crypto";

/** Compares two texts in constant time. */
export function sameText(a: string, b: string): boolean {
  const [one, two] = [a, b].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(one as Buffer, two as Buffer);
}
