import { createHash } from "node:crypto";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isStudyAddress, readPublished } from "../../src/client/published-study.js";
import { samplePackage } from "../studies/support/packages.js";
import { type HostileService, startHostile } from "./research-hostile.js";

const id = "12345678-1234-4234-8234-123456789abc";
const study = samplePackage({ title: "Published" });
const bytes = JSON.stringify(study);
const sha256 = createHash("sha256").update(bytes).digest("hex");

let service: HostileService;
test.before(async () => {
  service = await startHostile();
});
test.before.each(() => {
  service.seen.length = 0;
});
test.after(() => service.close());

function reply(status: number, body: string, headers: Record<string, string> = {}) {
  service.answer = (_request, response) => response.writeHead(status, headers).end(body);
}

const refused = (address: string, caFile = service.caFile): Promise<string> =>
  readPublished(address, { caFile }).then(
    () => "it was read",
    (error: Error) => error.message,
  );

test("a study is read by its page's address, any version, without a token", async () => {
  reply(200, bytes, { "X-Content-SHA256": sha256, "X-Study-Version": "3" });
  const upper = `${service.url}/studies/${id.toUpperCase()}`;
  const { AGENT_RESEARCH_TOKEN: before } = process.env;
  process.env.AGENT_RESEARCH_TOKEN = "tpl_not-for-this";
  const found = await readPublished(upper, { caFile: service.caFile });
  if (before === undefined) delete process.env.AGENT_RESEARCH_TOKEN;
  else process.env.AGENT_RESEARCH_TOKEN = before;
  assert.equal(found, { id, version: 3, package_sha256: sha256, package: study });
  await readPublished(`${service.url}/studies/${id}/v/12/?from=mail#finding`, { caFile: service.caFile });
  assert.equal(
    service.seen.map(({ line }) => line),
    [`GET /studies/${id.toUpperCase()}/package.json`, `GET /studies/${id}/v/12/package.json`],
  );
  for (const { headers } of service.seen) assert.is(headers.authorization, undefined);
});

test("what is no study's address is refused before anything is asked", async () => {
  const sentence =
    "A study's address has the form https://…/studies/ID, or …/studies/ID/v/N for one version.";
  const here = `${service.url}/studies`;
  for (const address of ["", "study", here, `${here}/${id}x`, `${here}/${id}/v/0`, `${here}/${id}/v/x`]) {
    assert.is(await refused(address), sentence, address);
    assert.not(isStudyAddress(address), address);
  }
  const plain = `${here}/${id}`.replace("https:", "http:");
  assert.is(await refused(plain), sentence);
  assert.ok(isStudyAddress(plain), "it is one, of a service that would have to be asked in the open");
  assert.ok(isStudyAddress(`${here}/${id}/v/2`));
  assert.not(isStudyAddress(`ftp://localhost/studies/${id}`));
  assert.equal(service.seen, []);
});

test("answers with a wrong version, checksum or content are refused", async () => {
  const address = `${service.url}/studies/${id}`;
  const without = "The response lacks the study's version or checksum.";
  const checksum = { "X-Content-SHA256": sha256 };
  for (const headers of [
    {},
    checksum,
    { "X-Study-Version": "1" },
    { ...checksum, "X-Study-Version": "0" },
    { ...checksum, "X-Study-Version": "1.5" },
    { ...checksum, "X-Study-Version": "first" },
  ] as Record<string, string>[]) {
    reply(200, bytes, headers);
    assert.is(await refused(address), without, JSON.stringify(headers));
  }
  const version = { "X-Study-Version": "1" };
  reply(200, `${bytes} `, { ...checksum, ...version });
  assert.match(await refused(address), "does not match its checksum");
  const whole = (body: string) =>
    reply(200, body, { ...version, "X-Content-SHA256": createHash("sha256").update(body).digest("hex") });
  whole("{}");
  assert.match(await refused(address), /^The response is not a study package: .* required/);
  whole("<html>");
  assert.match(await refused(address), /^The response is not a study package: /);
  const told: [number, string][] = [
    [404, "no such study"],
    [410, "it was withdrawn or removed"],
    [500, "request refused"],
  ];
  for (const [status, why] of told) {
    reply(status, bytes, { ...checksum, ...version });
    assert.is(await refused(address), `The service answered ${status}: ${why}.`);
  }
});

test("an authority of one's own is the one that is named, and an empty name is none", async () => {
  const address = `${service.url}/studies/${id}`;
  reply(200, bytes, { "X-Content-SHA256": sha256, "X-Study-Version": "1" });
  const name = "AGENT_RESEARCH_CA_FILE";
  const before = process.env[name];
  try {
    process.env[name] = service.caFile;
    assert.is((await readPublished(address)).version, 1);
    assert.match(await refused(address, ""), /is not secure \(DEPTH_ZERO_SELF_SIGNED_CERT\)/);
  } finally {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  }
});

test.run();
