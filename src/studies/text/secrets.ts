import { strings } from "./walk.js";

// A draft may hold 100,000 characters crafted to slow these down. So unbounded repetitions match only from the start of a
// run (by lookbehind), never from within it.
const kinds: [kind: string, pattern: RegExp][] = [
  ["token of this service", /\btpl_[0-9A-Za-z]{49}\b/g],
  ["private key", /-----BEGIN [A-Z ]*PRIVATE KEY-----/g],
  ["AWS access key", /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/g],
  ["GitHub token", /\b(?:gh[pousr]_[0-9A-Za-z]{36,}|github_pat_[0-9A-Za-z_]{22,})\b/g],
  ["Hugging Face token", /\bhf_[0-9A-Za-z]{30,}\b/g],
  ["API key", /\bsk-[0-9A-Za-z_-]{20,}/g],
  ["Slack token", /\bxox[abprs]-[0-9A-Za-z-]{10,}/g],
  ["Google API key", /\bAIza[0-9A-Za-z_-]{35}\b/g],
  ["JSON web token", /(?<![0-9A-Za-z_-])eyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{5,}/g],
  ["bearer credential", /\bBearer\s+[0-9A-Za-z._~+/-]{20,}/gi],
  ["password", /\b(?:password|passwd|secret|api[_-]?key)\s*[:=]\s*\S{6,}/gi],
  ["credentials in a URL", /(?<![a-z0-9+.-])[a-z0-9+.-]+:\/\/[^\s/:@]+:[^\s/@]+@/gi],
  ["home folder", /(?:\/home\/|\/Users\/|C:\\Users\\)[^\s/\\"']+/g],
  ["e-mail address", /(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}\b/g],
];

export interface LikelySecret {
  kind: string;
  pointer: string;
  /** Its first characters only. */
  start: string;
}

/** Likely secrets and personal data in a package, at most 100, for a person to check. */
export function findSecrets(value: unknown, at = ""): LikelySecret[] {
  const found: LikelySecret[] = [];
  for (const [pointer, text] of strings(value, at)) {
    for (const [kind, pattern] of kinds) {
      for (const match of text.matchAll(pattern)) {
        if (found.length === 100) return found;
        found.push({ kind, pointer, start: match[0].slice(0, 12) });
      }
    }
  }
  return found;
}
