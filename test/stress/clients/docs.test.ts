import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { clientSources, findPython, pythonForTests, runProgram } from "../../clients/support/python.js";
import { startLocal, startStudies } from "../../clients/support/services.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const hasNumpy = findPython("numpy") === pythonForTests();

/** The programs of a page by its `##` and `###` headings; those of a `##` are one program, as a reader types them. */
function programs(page: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const section of readFileSync(join(root, page), "utf8").split(/^(?=## )/m)) {
    const parts = section.split(/^(?=### )/m).filter((part) => hasNumpy || !part.startsWith("### Arrays"));
    const blocks = [...parts.join("").matchAll(/```python\n([\s\S]*?)```/g)].map(([, code]) => code);
    const heading = /^## (.*)/.exec(section)?.[1] ?? "";
    if (blocks.length > 0) found.set(heading, blocks.join("\n"));
  }
  return found;
}

const folder = mkdtempSync(join(tmpdir(), "tapline-clients-"));
const [local, studies] = await Promise.all([startLocal(), startStudies()]);
const token = await studies.token("Ada", ["public:read", "drafts:write"]);

async function run(program: string): Promise<string> {
  const here = program
    .replaceAll("http://127.0.0.1:8980", local.lab)
    .replaceAll("port=8971", `port=${local.servingPort}`);
  const { code, stdout, stderr } = await runProgram(pythonForTests(), ["-c", here], {
    folder,
    environment: {
      PYTHONPATH: clientSources.join(":"),
      AGENT_RESEARCH_URL: studies.origin,
      AGENT_RESEARCH_TOKEN: token,
      AGENT_RESEARCH_CA_FILE: studies.certificateFile,
    },
  });
  assert.is(code, 0, stderr);
  assert.is(stderr, "");
  return stdout;
}

/** What each program prints, in parts; the model and its figures may change, the form does not. */
const expected: Record<string, Record<string, RegExp[]>> = {
  "docs/python.md": {
    ...(hasNumpy && {
      "A model as an object": [/^\(2, 6, 128\) loss \d\.\d{3}$/m, /^' ?Paris'\n' ?Tokyo'$/m],
    }),
    Experiments: [
      /^ {3}0 ' \w+' \d\.\d{3} '.*'$/m,
      /^failed - .*99/m,
      /^ \w+\n \w+$/m,
      ...(hasNumpy ? [/^3 \(1, 6, 128\)$/m, /^\d\.\d+$/m] : []),
    ],
    "The model that is serving": [/^tapline-demo$/m, /^\{'token_id': /m],
    Studies: [/^.+ - .*[Pp]robe/m, /^A person reviews and publishes it at https:/m],
  },
  "clients/python/tapline_lab/README.md": { "": [/^\{'token_id': /m, /^\[\{'token_id': /m] },
  "clients/python/agent_research/README.md": { "": [/steers politeness/] },
};

for (const [page, sections] of Object.entries(expected)) {
  test(`${page} contains exactly these programs`, () => {
    assert.equal([...programs(page).keys()], Object.keys(sections));
  });
  for (const [heading, patterns] of Object.entries(sections)) {
    test(`${page} ${heading}`, async () => {
      const output = await run(programs(page).get(heading) as string);
      for (const pattern of patterns) assert.match(output, pattern);
    });
  }
}
if (!hasNumpy) test.skip("the programs about arrays: NumPy is not installed");

test.after(async () => {
  await Promise.all([local.stop(), studies.stop()]);
  rmSync(folder, { recursive: true });
});
test.run();
