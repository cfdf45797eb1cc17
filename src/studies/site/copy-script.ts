import { createHash } from "node:crypto";

/**
 * The site's only script, on pages that show code: adds a copy button to each code block. Everything else works without
 * scripts.
 */
export const copyScript = `"use strict";
for (const code of document.querySelectorAll("pre.code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
  });
  const box = document.createElement("div");
  box.className = "copying";
  code.before(box);
  box.append(button, code);
}
`;

export const copyScriptPath = `/assets/${createHash("sha256").update(copyScript).digest("hex").slice(0, 16)}.js`;
