import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { readConfig } from "../../src/router/index.js";
import { program } from "../support/program.js";
import { send } from "../support/request.js";
import { until } from "../support/until.js";
import { event, type Fake, startFake } from "./support/fake.js";
import { messages } from "./support/routing.js";

let folder: string;

test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), "tapline-router-"));
});
test.after(() => rm(folder, { recursive: true }));

test("a configuration is read, or refused with the file's name and one sentence", async () => {
  const path = join(folder, "some.json");
  const read = async (value: unknown) => {
    await writeFile(path, typeof value === "string" ? value : JSON.stringify(value));
    return readConfig(path).catch((error: Error) => `${error.name}: ${error.message.replace(path, "F")}`);
  };
  const backend = { url: "http://h:1/base/v1/", api_key: "k", model: "m", slots: 2 };
  assert.equal(await read({ backends: [backend] }), [{ ...backend, url: "http://h:1/base" }]);
  for (const [value, told] of [
    ["{", /^UserError: F is not valid JSON\.$/],
    [{}, /^UserError: F is not a valid configuration: .*backends/],
    [{ backends: [] }, /^UserError: F is not a valid configuration: .*backends/],
    [{ backends: [{ url: "ftp://h" }] }, /such as http:\/\/127\.0\.0\.1:8971, got ftp:\/\/h\.$/],
    [{ backends: [{ url: "http://a:b@h" }] }, /must not have a user/],
    [{ backends: [{ url: "http://:b@h" }] }, /must not have a user/],
    [{ backends: [{ url: "http://a@h" }] }, /must not have a user/],
    [{ backends: [{ url: "http://h/?a" }] }, /must not have a user, query or fragment\.$/],
    [{ backends: [{ url: "http://h/#a" }] }, /must not have a user, query or fragment\.$/],
    [{ backends: [{ url: "http://h/v1" }, { url: "http://h" }] }, /The backend http:\/\/h is given twice\.$/],
    [{ backends: [{ url: "http://h", slots: 0 }] }, /slots/],
    [{ backends: [{ url: "http://h", port: 1 }] }, /port/],
  ] as const) {
    assert.match(String(await read(value)), told);
  }
  assert.match(String(await readConfig(join(folder, "none")).catch(String)), "none does not exist.");
});

function start(words: string[]) {
  const child = spawn(process.execPath, [...program, "router", "--port", "0", ...words], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { text: "" };
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said.text += text));
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  return { child, said, ended };
}

test("the command says what is wrong with its words", async () => {
  for (const [words, told] of [
    [[], "Choose the backends with either --backend URL (repeatable) or --config FILE."],
    [["--backend", "http://h", "--config", "f"], "Choose the backends with either"],
    [["--backend", "nonsense"], "A backend must be an address such as http://127.0.0.1:8971, got nonsense."],
  ] as const) {
    const { said, ended } = start([...words]);
    assert.is.not(await ended, 0);
    assert.match(said.text, told);
  }
});

test("SIGHUP reloads the configuration; streams continue, a bad file is ignored", async () => {
  const path = join(folder, "backends.json");
  const write = (...backends: Fake[]) =>
    writeFile(path, JSON.stringify({ backends: backends.map(({ url }) => ({ url })) }));
  let finish = () => {};
  const one = await startFake({
    post: (_got, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write(event("begun"));
      finish = () => void response.end(event("ended"));
    },
  });
  const two = await startFake();
  await write(one);
  const { child, said, ended } = start(["--config", path]);
  await until(() => /is ready at (\S+)\s/.test(said.text));
  const url = /is ready at (\S+)\s/.exec(said.text)?.[1];
  const chat = () => send(`${url}/v1/chat/completions`, "POST", { messages, stream: true });
  const stream = chat();
  await until(() => one.got.length === 1);
  await write(two);
  child.kill("SIGHUP");
  await until(() => /configuration reloaded: 1 backend\./.test(said.text));
  assert.is((await chat()).status, 200);
  assert.equal([one.got.length, two.got.length], [1, 1]);
  finish();
  assert.is((await stream).bytes.toString(), event("begun") + event("ended"));
  await until(async () => (await one.connections()) === 0); // retired: nothing is kept open
  await writeFile(path, "{");
  child.kill("SIGHUP");
  await until(() => /configuration not reloaded\. .* is not valid JSON\./.test(said.text));
  assert.is((await chat()).status, 200);
  assert.is(two.got.length, 2);
  child.kill("SIGTERM");
  assert.is(await ended, 0);
  await one.close();
  await two.close();
});

test.run();
