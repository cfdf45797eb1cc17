// VitePress's settings; scripts/docs/site copies this file next to the pages, with sidebar.json.
import { readFileSync } from "node:fs";
import { defineConfig } from "vitepress";

const sidebar = JSON.parse(readFileSync(new URL("./sidebar.json", import.meta.url), "utf8"));

export default defineConfig({
  title: "tapline",
  description: "Opens up language models while they run.",
  base: process.env.TAPLINE_SITE_BASE ?? "/",
  cleanUrls: false,
  lastUpdated: false,
  // The pages are Markdown for GitHub too: no HTML, no Vue expressions, and GitHub's anchors.
  markdown: {
    html: false,
    attrs: { disable: true },
    anchor: { slugify: anchorOf },
    config(md) {
      const text = md.renderer.rules.text;
      md.renderer.rules.text = (...args) => text(...args).replaceAll("{{", "&#123;&#123;");
    },
  },
  themeConfig: {
    sidebar,
    outline: { level: [2, 3] },
    search: { provider: "local" },
    docFooter: { prev: "Previous", next: "Next" },
  },
});

function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}\p{Pc}\- ]/gu, "")
    .replaceAll(" ", "-");
}
