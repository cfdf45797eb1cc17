/**
 * A first-time user, from `tapline workbench` to "I changed one layer and the answer changed", by what the terminal and the
 * page say themselves: each step is a sentence or a button that is in sight, and what it asks for. How long it takes is the
 * machine's business; how many steps it takes is counted.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundBrowser, inBrowser, newContext } from "../../support/browser.js";
import { program } from "../../support/program.js";
import { tabTo } from "../../workbench/by-keyboard.js";
import { openMenu } from "../../workbench/menus.js";

const folders: string[] = [];
const commands: ChildProcess[] = [];
aroundBrowser({
  async end() {
    for (const command of commands) {
      const ended = once(command, "exit");
      command.kill("SIGINT");
      if (command.exitCode === null && command.signalCode === null) await ended;
    }
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  },
});

/** The command as somebody types it who never did, and the link that it prints. */
async function tapline(): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), "tapline-walk-"));
  folders.push(home);
  // A name, and any free port, so that what else runs on this machine is not met.
  const words = [...program, "workbench", "demo", "--no-open", "--port", "0"];
  const environment = { ...process.env, TAPLINE_HOME: home, TAPLINE_BACKEND: "cpu" };
  const command = spawn(process.execPath, words, { env: environment, stdio: ["ignore", "pipe", "inherit"] });
  commands.push(command);
  let said = "";
  for await (const chunk of command.stdout as AsyncIterable<Buffer>) {
    said += chunk.toString();
    const [, link] =
      /Open this link in a browser on this machine. It works once, within ten minutes:\n {2}(\S+)\n/.exec(
        said,
      ) ?? [];
    if (link !== undefined) return link;
  }
  throw new Error(`The command ended without a link: ${said}`);
}

/** That one sees it without looking for it. */
async function inSight(page: Page, what: Locator): Promise<void> {
  await what.waitFor();
  const [box, window] = [await what.boundingBox(), page.viewportSize()];
  assert.ok(box !== null && window !== null);
  const seen = box.y >= 0 && box.y + box.height <= window.height && box.x >= 0;
  assert.ok(seen && box.x + box.width <= window.width, `${what} is in sight, not at ${box.x}, ${box.y}`);
}

const said = async (page: Page, at: number) =>
  (await page.locator(".answer-text").nth(at).locator(".t").allTextContents()).join("");

const pressing = {
  async mouse(page: Page, button: Locator) {
    await inSight(page, button);
    await button.click();
  },
  async keyboard(page: Page, button: Locator) {
    await inSight(page, button);
    await tabTo(page, new RegExp(`^${await button.textContent()}$`), "button");
    await page.keyboard.press("Enter");
  },
};

for (const [by, press] of Object.entries(pressing)) {
  inBrowser(`with the ${by}: three steps to an answer that one layer has changed`, async () => {
    const context = await newContext({ viewport: { width: 1280, height: 800 } });
    const page = await context.newPage();
    let steps = 0;
    // 1. The terminal says: open this link.
    await page.goto(await tapline());
    steps += 1;
    // 2. A question is written already, and a button next to it says Send.
    const question = page.getByRole("textbox", { name: "Message" });
    await inSight(page, question);
    assert.is(await question.inputValue(), "The capital of France is");
    await press(page, page.getByRole("button", { name: "Send" }));
    steps += 1;
    await page.getByText(/^\d+ tokens$/).waitFor();
    assert.match(await said(page, 0), /Paris/);
    // 3. Under the answer the page says what to do next.
    await inSight(page, page.getByText("Next, click any word"));
    await press(page, page.getByRole("button", { name: "Rerun with a layer changed" }));
    steps += 1;
    // One layer is changed, and the answer with it: both are shown, and where they differ.
    const told = page.getByText(/\d+ of \d+ words differ/);
    await told.waitFor();
    await inSight(page, told);
    assert.match(await said(page, 0), /Paris/, "the model's own");
    assert.is.not(await said(page, 0), await said(page, 1));
    assert.ok((await page.locator(".t.differs").count()) > 0);
    await page
      .getByText(/ablate at layer 0: \d+ positions, mean change 90\.0 % of the activation norm\./)
      .waitFor();
    await page.locator(".strip").getByText("1 intervention active in Chat").waitFor();
    assert.is(steps, 3);
    // Later tokens: a word opens, and the click is a script.
    await inSight(page, page.getByText(/click a word to see its alternatives/));
    await page.locator(".answer-text .t").filter({ visible: true }).first().click();
    await page.getByRole("region", { name: "Inside a token" }).waitFor();
    await openMenu(page.locator(".turn").last(), "Script");
    await page.getByText("As a script", { exact: true }).last().click();
    await page.getByText(/"strength": 0\.9/).waitFor();
    await context.close();
  });
}

test.run();
