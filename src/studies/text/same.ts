import { createHash, timingSafeEqual } from "node:crypto";

/** Whether two texts are the same, in a time that says nothing about where they differ. */
export function sameText(a: string, b: string): boolean {
  const [one, two] = [a, b].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(one as Buffer, two as Buffer);
}
