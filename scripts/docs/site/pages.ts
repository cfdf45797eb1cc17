import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, posix, relative } from "node:path";

/** Pages outside docs/ that the site also has: their place in the repository, and on the site. */
const outside: Readonly<Record<string, string>> = {
  "CONTRIBUTING.md": "contributing/index.md",
  "SECURITY.md": "security.md",
  "CHANGELOG.md": "changelog.md",
  "models/demo/README.md": "demo-model.md",
  "native/README.md": "contributing/native.md",
  "clients/python/tapline_lab/README.md": "clients/tapline-lab.md",
  "clients/python/agent_research/README.md": "clients/agent-research.md",
};

export interface SitePages {
  /** Text of each page by its path on the site. */
  pages: Record<string, string>;
  /** Other files: their path on the site, and in the repository. */
  files: Record<string, string>;
  sidebar: { text: string; collapsed?: boolean; items: { text: string; link: string }[] }[];
}

/** What the site is built from: docs/ and a few more pages, with links that work there. */
export function sitePages(root: string): SitePages {
  const inDocs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .map((name) => name.replaceAll("\\", "/"))
    .filter((name) => !name.startsWith("site") && statSync(join(root, "docs", name)).isFile());
  const places = new Map<string, string>(Object.entries(outside));
  for (const name of inDocs) {
    if (!name.endsWith(".json")) places.set(`docs/${name}`, name === "README.md" ? "index.md" : name);
  }
  const pages: Record<string, string> = {};
  const files: Record<string, string> = {};
  for (const [source, place] of places) {
    if (!existsSync(join(root, source)))
      throw new Error(`The site has a page from ${source}, which is missing.`);
    if (place.endsWith(".md"))
      pages[place] = withLinks(readFileSync(join(root, source), "utf8"), source, places);
    // Vite resolves images of pages; other files are copied as they are.
    else files[place.startsWith("images/") ? place : `public/${place}`] = source;
  }
  return { pages, files, sidebar: sidebarOf(pages["index.md"] as string) };
}

/** A page with links to the site's places; a link to anything that the site lacks becomes its text. */
function withLinks(text: string, source: string, places: ReadonlyMap<string, string>): string {
  const here = dirname(places.get(source) as string);
  let fenced = false;
  return text
    .split("\n")
    .map((line) => {
      if (/^\s*```/.test(line)) fenced = !fenced;
      if (fenced) return line;
      return line.replace(
        /(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)/g,
        (_, image: string, label: string, target: string, anchor = "") => {
          const place = places.get(posix.normalize(posix.join(posix.dirname(source), target)));
          if (place === undefined) return label;
          const path = relative(here, place).replaceAll("\\", "/");
          return `${image}[${label}](${path.startsWith(".") ? path : `./${path}`}${anchor})`;
        },
      );
    })
    .join("\n");
}

/** Names that begin with a small letter wherever they are, and abbreviations. */
const spelled: Readonly<Record<string, string>> = {
  nnsight: "nnsight",
  sae: "SAE",
  tapline_lab: "tapline_lab",
  agent_research: "agent_research",
};

const titleOf = (text: string) => spelled[text] ?? `${text[0]?.toUpperCase()}${text.slice(1)}`;

/** The rows of the front page's list of all pages, as groups. */
function sidebarOf(index: string): SitePages["sidebar"] {
  const section = /\n## All pages\n([\s\S]*?)\n## /.exec(index)?.[1] ?? "";
  const groups = [...section.matchAll(/^\| ([^|]+) \| (.+) \|$/gm)].flatMap(([, name, links]) => {
    const items = [...(links as string).matchAll(/\[([^\]]+)\]\(\.\/([^)]+)\)/g)].map(([, text, link]) => ({
      text: titleOf(text as string),
      link: `/${(link as string).replace(/\.md(?=#|$)/, "")}`,
    }));
    return items.length === 0 ? [] : [{ text: (name as string).trim(), items }];
  });
  if (groups.length < 5) throw new Error("docs/README.md has no section “All pages” with a table of groups.");
  return [{ text: "Overview", items: [{ text: "What do you want to know?", link: "/" }] }, ...groups];
}
