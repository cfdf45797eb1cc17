/** A model without a chat template: chats continue the raw texts of the messages, and the server reports it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { startServer, type TestServer } from "./support/serving.js";
import { writeTinyModel } from "./support/tiny-models.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-base-"));
const path = join(folder, "base.gguf");
let server: TestServer;

test.before(async () => {
  await writeTinyModel(path);
  server = await startServer({ model: path, home: folder });
});
test.after(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

test("messages become their raw texts, and answers continue them", async () => {
  const applied = async (...messages: [role: string, content: unknown][]) => {
    const body = { messages: messages.map(([role, content]) => ({ role, content })) };
    return (await server.post("/apply-template", body)).body.prompt;
  };
  assert.is(await applied(["user", "Once upon a time"]), "Once upon a time");
  const talk: [string, string][] = [
    ["system", "A story."],
    ["user", "Once"],
    ["assistant", " upon"],
  ];
  assert.is(await applied(...talk), "A story.\n\nOnce upon");
  assert.is(await applied(...talk, ["user", "Then"]), "A story.\n\nOnce upon\n\nThen");
  assert.is(await applied(["user", "  <b> {{ 1 }}\n"]), "  <b> {{ 1 }}\n", "unchanged");
});

test("a chat completion is the completion of its text", async () => {
  const same = { temperature: 0, max_tokens: 12 };
  const text = "Once upon a time";
  const chat = await server.post("/v1/chat/completions", {
    messages: [{ role: "user", content: text }],
    ...same,
  });
  const raw = await server.post("/v1/completions", { prompt: text, ...same });
  assert.equal([chat.status, raw.status], [200, 200], chat.bytes.toString());
  assert.is(chat.body.choices[0].message.content, raw.body.choices[0].text);
  assert.is(chat.body.usage.prompt_tokens, raw.body.usage.prompt_tokens);
});

test("the model list and the capabilities report whether there is a template", async () => {
  const reported = async (one: TestServer) => [
    (await one.get("/v1/models")).body.data[0].meta.chat_template,
    (await one.get("/lab/capabilities")).body.chat_template,
  ];
  assert.equal(await reported(server), [false, false]);
  const demo = await startServer({ home: folder });
  assert.equal(await reported(demo), [true, true]);
  await demo.close();
  const chatMl = await startServer({ model: path, home: folder, chatTemplate: "chatml" });
  assert.equal(await reported(chatMl), [true, true], "a template given by the user");
  const { body } = await chatMl.post("/apply-template", { messages: [{ role: "user", content: "Hi" }] });
  assert.match(body.prompt, "<|im_start|>user");
  await chatMl.close();
});

test.run();
