import * as fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type CodeRequest, languages, literal, scriptOf } from "../../src/workbench/page/scripts.js";
import { apiRoutes } from "../../src/workbench/routes.js";
import { actions } from "./actions.js";

test("each thing that the page can ask for has its script, or a reason why not", () => {
  const bench = { services: {} } as Parameters<typeof apiRoutes>[0];
  const { stack } = apiRoutes(bench) as unknown as { stack: { path: string; methods: string[] }[] };
  const routes = stack.flatMap(({ path, methods }) => {
    return methods.filter((method) => method !== "HEAD").map((method) => `${method} ${path}`);
  });
  assert.equal(routes.sort(), Object.keys(actions).sort());
});

const lab = { service: "lab", url: "http://127.0.0.1:8980" } as const;
const server = { service: "server", url: "http://127.0.0.1:8971" } as const;

test("a request as three scripts", () => {
  const request: CodeRequest = {
    ...lab,
    path: "/lab/v1/jobs",
    body: { operation: "inspect", model: "demo", prompt: "It's", layers: [0], decompose: true },
  };
  assert.is(
    scriptOf("curl", [request]),
    `curl -s http://127.0.0.1:8980/lab/v1/jobs -d '{
  "operation": "inspect",
  "model": "demo",
  "prompt": "It'\\''s",
  "layers": [
    0
  ],
  "decompose": true
}'`,
  );
  assert.is(
    scriptOf("Python", [request]),
    `from tapline_lab import Lab

lab = Lab("http://127.0.0.1:8980")
job = lab.submit("inspect", "demo", **{"prompt": "It's", "layers": [0], "decompose": True})
print(lab.wait(job)["result"])`,
  );
  assert.is(
    scriptOf("TypeScript", [request]),
    `import { Lab } from "tapline/client";

const lab = new Lab("http://127.0.0.1:8980");
const job = await lab.submit("inspect", "demo", {
  "prompt": "It's",
  "layers": [
    0
  ],
  "decompose": true
});
console.log((await lab.wait(job)).result);`,
  );
});

test("several requests are one script, which names modules and clients once", () => {
  const requests: CodeRequest[] = [
    { ...lab, path: "/lab/v1/jobs/0f" },
    { ...lab, path: "/lab/v1/jobs/0f/artifacts/a%20b.npz", file: "a b.npz" },
  ];
  assert.is(
    scriptOf("curl", requests),
    `curl -s http://127.0.0.1:8980/lab/v1/jobs/0f
curl -s -o 'a b.npz' http://127.0.0.1:8980/lab/v1/jobs/0f/artifacts/a%20b.npz`,
  );
  assert.is(
    scriptOf("Python", requests),
    `from tapline_lab import Lab

lab = Lab("http://127.0.0.1:8980")
print(lab.job("0f"))
lab.artifact("0f", "a b.npz", "a b.npz")`,
  );
  const jobs = ["a", "b"].map((prompt) => ({
    ...lab,
    path: "/lab/v1/jobs",
    body: { operation: "inspect", model: "m", prompt },
  }));
  assert.match(
    scriptOf("TypeScript", jobs),
    /const job = [\s\S]*wait\(job\)[\s\S]*const job2 = [\s\S]*wait\(job2\)/,
  );
  const chats = ["a", "b"].map((prompt) => ({ ...server, path: "/v1/completions", body: { prompt } }));
  assert.match(
    scriptOf("TypeScript", chats),
    /const answers = [\s\S]*of answers\)[\s\S]*const answers2 = [\s\S]*of answers2\)/,
  );
  const tokens = ["a", "b"].map((content) => ({ ...server, path: "/tokenize", body: { content } }));
  const script = scriptOf("TypeScript", tokens);
  assert.match(script, /const answer = await fetch[\s\S]*const answer2 = await fetch/);
});

test("a profile is put, under its name", () => {
  const body = { tapline: { interventions: [] } };
  const request: CodeRequest = { ...server, path: "/lab/profiles/polite", body };
  assert.match(scriptOf("curl", [request]), /^curl -s -X PUT http:\S+\/lab\/profiles\/polite -d '/);
  assert.match(scriptOf("Python", [request]), /model\.put_profile\("polite", \*\*\{"tapline": /);
  assert.match(scriptOf("TypeScript", [request]), /await model\.putProfile\("polite", \{/);
});

test("whatever a text is, it stays a text in each language", () => {
  const texts = ["'; touch /tmp/x; '", "$(id) `id`", "\\n\n\t", 'a"b', "\u202etxt", "{{x}} %s", "–"];
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      assert.is(JSON.parse(literal(text)), text);
      const [, quoted] = /^curl -s \S+ -d '([\s\S]*)'$/.exec(
        scriptOf("curl", [{ ...server, path: "/tokenize", body: { text } }]),
      ) as string[];
      // As a shell reads it: quotes end, an escaped one, quotes begin.
      assert.equal(JSON.parse((quoted as string).replaceAll("'\\''", "'")), { text });
    }),
    { examples: texts.map((text) => [text]) },
  );
  assert.equal(languages, ["curl", "Python", "TypeScript"]);
});

test.run();
