import { test } from "uvu";
import * as assert from "uvu/assert";
import { readmeForPackages, relativeLinks, repositoryAddress } from "../../scripts/build/readme.js";

const markdown = `# Name

![A picture.](docs/a.svg)
See [installing](docs/installing.md#cuda), [below](#below) and [Node](https://nodejs.org).
[![Build](docs/badge.svg)](docs/ci.md)

\`\`\`md
[a link in code](docs/b.md)
\`\`\`

    [indented](code.md)
`;

test("relative links become absolute where the repository is known", () => {
  const address = "https://example.org/o/tapline";
  assert.is(
    readmeForPackages(markdown, { address, version: "1.2.3" }),
    `# Name

![A picture.](https://example.org/o/tapline/raw/v1.2.3/docs/a.svg)
See [installing](https://example.org/o/tapline/blob/v1.2.3/docs/installing.md#cuda), [below](#below) and [Node](https://nodejs.org).
[![Build](https://example.org/o/tapline/raw/v1.2.3/docs/badge.svg)](https://example.org/o/tapline/blob/v1.2.3/docs/ci.md)

\`\`\`md
[a link in code](docs/b.md)
\`\`\`

    [indented](code.md)
`,
  );
});

test("links of a README in a folder are resolved from there", () => {
  const options = { address: "https://example.org/r", version: "1.0.0", folder: "clients/python" };
  assert.is(
    readmeForPackages("[docs](../../docs/python.md)\n", options),
    "[docs](https://example.org/r/blob/v1.0.0/docs/python.md)\n",
  );
});

test("without a repository links become text and pictures their description", () => {
  const text = readmeForPackages(markdown, { address: undefined, version: "1.2.3" });
  assert.is(
    text,
    `# Name

*A picture.*
See installing, [below](#below) and [Node](https://nodejs.org).
*Build*

\`\`\`md
[a link in code](docs/b.md)
\`\`\`

    [indented](code.md)

Pages and pictures that this text names are in the sources of tapline, with the same names.
`,
  );
});

test("a README without relative links stays as it is", () => {
  const plain = "# Name\n\n[Node](https://nodejs.org) [below](#x)\n";
  assert.is(readmeForPackages(plain, { address: undefined, version: "1.0.0" }), plain);
});

test("relativeLinks finds links and pictures, not addresses and anchors", () => {
  assert.equal(relativeLinks("![a](b.png) [c](d.md) [e](#f) [g](https://h.i) [j](mailto:k@l.m)"), [
    "b.png",
    "d.md",
  ]);
});

test("the repository's address is read from each form of package.json", () => {
  const addresses = [
    { repository: "github:o/tapline" },
    { repository: "o/tapline" },
    { repository: { url: "git+https://github.com/o/tapline.git" } },
    { repository: "https://github.com/o/tapline/" },
  ].map(repositoryAddress);
  assert.equal(new Set(addresses), new Set(["https://github.com/o/tapline"]));
  assert.is(repositoryAddress({}), undefined);
});

test.run();
