import { posix } from "node:path";

/** Pictures and links of Markdown; a picture may be the text of a link. */
const picture = /!\[([^\]]*)\]\(([^()\s]+)\)/g;
const link = /(?<!!)\[((?:!\[[^\]]*\]\([^()\s]+\)|[^\]])*)\]\(([^()\s]+)\)/g;
const notRelative = /^([a-z][a-z0-9+.-]*:|#|\/\/)/i;

/**
 * The repository's address on the web, from package.json's `repository`.
 * @param {{ repository?: string | { url: string } }} about package.json
 * @returns {string | undefined} without a slash at the end; undefined if package.json has none
 */
export function repositoryAddress({ repository }) {
  const url = typeof repository === "string" ? repository : repository?.url;
  if (url === undefined) return undefined;
  const short = /^(?:github:)?([\w.-]+\/[\w.-]+)$/.exec(url)?.[1];
  return (short ? `https://github.com/${short}` : url.replace(/^git\+/, "")).replace(/(\.git)?\/?$/, "");
}

/**
 * A README for the page of a package, where relative links lead nowhere. With an address of the repository they become
 * absolute. Without one, links become their text and pictures their description, and a line at the end says where the
 * files are.
 * @param {string} markdown
 * @param {{ address: string | undefined, version: string, folder?: string }} options `folder` is the README's in the repository
 */
export function readmeForPackages(markdown, { address, version, folder = "" }) {
  let removed = 0;
  /** @param {string} target @param {string} kind @param {string} whole @param {string} text */
  const replaced = (target, kind, whole, text) => {
    if (notRelative.test(target)) return whole;
    if (address === undefined) {
      removed++;
      return text;
    }
    const path = posix.join(folder, target);
    return `${whole.slice(0, -target.length - 1)}${address}/${kind}/v${version}/${path})`;
  };
  // Code blocks are at the odd places.
  const parts = markdown.split(/^(```[^\n]*\n[\s\S]*?^```$|(?: {4}[^\n]*\n)+)/m);
  const changed = parts.map((part, i) => {
    if (i % 2 === 1) return part;
    return part
      .replace(picture, (whole, text, target) => replaced(target, "raw", whole, `*${text}*`))
      .replace(link, (whole, text, target) => replaced(target, "blob", whole, text));
  });
  const note =
    "Pages and pictures that this text names are in the sources of tapline, with the same names.\n";
  const text = changed.join("");
  return removed === 0 ? text : `${text.trimEnd()}\n\n${note}`;
}

/** The relative links that are left. @param {string} markdown */
export function relativeLinks(markdown) {
  const targets = [...markdown.matchAll(picture), ...markdown.matchAll(link)].map((match) => match[2] ?? "");
  return targets.filter((target) => !notRelative.test(target));
}
