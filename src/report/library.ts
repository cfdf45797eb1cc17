import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

/** The inlined chart libraries: d3, then Observable Plot, which needs it. */
export async function chartLibraries(): Promise<string[]> {
  const [d3, plot] = await Promise.all(["d3", "@observablehq/plot"].map(minified));
  return [d3 as string, plot as string];
}

/** A package's browser bundle with its licence, which ISC requires. */
async function minified(name: string): Promise<string> {
  const folder = new URL("../", import.meta.resolve(name));
  const bundle = { d3: "dist/d3.min.js", "@observablehq/plot": "dist/plot.umd.min.js" }[name] as string;
  const [code, licence] = await Promise.all(
    [bundle, "LICENSE"].map((path) => readFile(new URL(path, folder), "utf8")),
  );
  return inline(`/*!\n${name}\n${licence}*/\n${code}`);
}

// The page's modules are plain JavaScript, which the build copies to dist/ unchanged.
const page = new URL("./page/", import.meta.url);

/**
 * The page's modules as one script. They import each other by `import { name, name as other } from "./file.js"` and export
 * declarations only; each becomes a function that returns its exports.
 */
export async function pageScript(): Promise<string> {
  const parts = new Map<string, string>();
  const add = async (file: string): Promise<void> => {
    if (parts.has(file)) return;
    parts.set(file, "");
    const source = await readFile(new URL(file, page), "utf8");
    for (const [, imported] of source.matchAll(/^import .* from "\.\/(.+)";$/gm))
      await add(imported as string);
    const exported = [...source.matchAll(/^export (?:async )?(?:function|const) (\w+)/gm)].map(
      ([, name]) => name,
    );
    const body = source
      .replace(
        /^import (\{.*\}) from "\.\/(.+)";$/gm,
        (_, names: string, from: string) => `const ${names.replaceAll(" as ", ": ")} = modules["${from}"];`,
      )
      .replace(/^export /gm, "");
    parts.delete(file);
    parts.set(
      file,
      `modules[${JSON.stringify(file)}] = (() => {\n${body}\nreturn { ${exported.join(", ")} };\n})();`,
    );
  };
  await add("main.js");
  return inline(`"use strict";\n(() => {\nconst modules = {};\n${[...parts.values()].join("\n")}\n})();`);
}

/** An inlined script must not close its element. */
function inline(code: string): string {
  if (/<\/script|<!--/i.test(code))
    throw new Error(`A script of ${fileURLToPath(page)} would end its element.`);
  return code;
}
