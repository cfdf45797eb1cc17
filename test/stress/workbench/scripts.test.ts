/** The scripts under "As a script" run as they are: with curl, Python and TypeScript, against the services of the page. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { Locator, Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Lab } from "../../../src/client/index.js";
import { setMeddle } from "../../lab/harness.js";
import { aroundBrowser, inBrowser } from "../../support/browser.js";
import { clientModule, module } from "../../support/program.js";
import { pythonWith } from "../../support/python.js";
import { until } from "../../support/until.js";
import { actions } from "../../workbench/actions.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";
import { keepDictionary } from "../../workbench/corner-dictionary.js";
import { openMenu } from "../../workbench/menus.js";

const run = promisify(execFile);
const clients = fileURLToPath(new URL("../../../clients/python/tapline_lab/src", import.meta.url));
const python = pythonWith("numpy");

let bench: Bench;
let folder: string;
/** Names behind "As a script" that ran. */
const ran = new Set<string>();
aroundBrowser({
  async start() {
    folder = mkdtempSync(join(tmpdir(), "tapline-scripts-"));
    bench = await startBench();
    await keepDictionary(bench.folder);
  },
  async end() {
    await bench?.close();
    rmSync(folder, { recursive: true, force: true });
  },
});

/** The code of a script in each language, as the page shows it. */
async function codeOf(inside: Locator, of: string): Promise<Record<string, string>> {
  const name = of === "" ? "As a script" : `As a script: ${of}`;
  const script = inside
    .locator("details.code")
    .filter({ has: inside.page().getByText(name, { exact: true }) });
  // A view that has just appeared takes the focus, which closes menus.
  await until(async () => {
    await openMenu(inside.locator(".result-tools"), "Export and scripts");
    await openMenu(inside, of === "" ? "Script" : `Script: ${of}`);
    return (await script.count()) > 0 && script.locator("summary").last().isVisible();
  });
  await script.locator("summary").last().click();
  const code: Record<string, string> = {};
  for (const language of ["curl", "Python", "TypeScript"]) {
    await script.getByRole("button", { name: language, exact: true }).last().click();
    code[language] = (await script.getByRole("region", { name: `${name}, ${language}` }).textContent()) ?? "";
  }
  return code;
}

/** Runs a script in a separate folder. @returns its output */
async function runScript(language: string, code: string): Promise<string> {
  const name = join(folder, language === "Python" ? "script.py" : "script.mjs");
  const env = { ...process.env, PYTHONPATH: clients, PYTHONDONTWRITEBYTECODE: "1" };
  const options = { cwd: folder, env, maxBuffer: 1 << 26 };
  if (language === "curl") return (await run("bash", ["-euc", code], options)).stdout;
  if (language === "Python") {
    assert.ok(python !== undefined, "these checks need a Python with NumPy");
    writeFileSync(name, code);
    return (await run(python, [name], options)).stdout;
  }
  // Outside of a project that has installed the package.
  writeFileSync(name, code.replace('"tapline/client"', JSON.stringify(pathToFileURL(clientModule).href)));
  return (await run(process.execPath, [...module, name], options)).stdout;
}

/** @param shows what each language's script has to show */
async function runs(inside: Locator, of: string, shows: RegExp, languages?: string[]): Promise<void> {
  for (const [language, code] of Object.entries(await codeOf(inside, of))) {
    if (languages?.includes(language) === false) continue;
    const shown = await runScript(language, code);
    assert.not.match(shown, /"error"|Traceback/, `${of}, ${language}`);
    assert.match(shown, shows, `${of}, ${language}: ${code}`);
  }
  ran.add(of);
}

const go = (page: Page, view: string) =>
  page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: view, exact: true }).click();

inBrowser("every action's script runs", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1280, height: 900 } });
  const main = page.locator("main");
  // A question with an intervention, and an answer that continues from a token.
  await page.getByRole("textbox", { name: "Message" }).fill("What is the capital of France?");
  await page.getByRole("button", { name: "Change a layer" }).click();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Send" }).click();
  const answered = () =>
    until(
      async () =>
        (await page.locator(".answer").count()) > 0 && (await page.getByText("Generating…").count()) === 0,
    );
  await page.locator(".answer").nth(1).waitFor();
  await answered();
  await runs(page.locator(".turn"), "", /Paris/);
  const before = page.url();
  await page.locator(".answer-text").first().locator(":scope > p .t, .markdown .t").nth(2).click();
  await page.getByRole("button", { name: "Resample from here" }).click();
  await page.waitForURL((url) => url.pathname !== new URL(before).pathname);
  await page.locator(".answer").first().waitFor();
  await answered();
  await runs(page.locator(".turn"), "", /Paris/);

  await go(page, "Patch");
  await runs(main, "tokenize", /5340|tokens/);
  await go(page, "Graph");
  await page.getByRole("spinbutton", { name: "Nodes", exact: true }).fill("20");
  await runs(main, "compute graph", /queued|running|completeness/);
  await go(page, "Steer");
  await runs(main, "create direction", /separation/);
  await go(page, "Probe");
  await page.getByRole("textbox", { name: "layers" }).fill("5");
  await runs(main, "train and evaluate", /queued|running|reports/);
  await page.getByRole("button", { name: "Train and evaluate" }).click();
  await page.getByRole("region", { name: "Save this probe" }).waitFor();
  await runs(main, "save probe", /['"]?name['"]?: ?['"]praise['"]/);
  await go(page, "Features");
  await runs(main, "run", /queued|running|fidelity/, ["curl", "Python"]);

  await go(page, "Drift");
  await runs(main, "measure drift", /queued|running|cosine/, ["curl"]);
  await go(page, "Chat");
  await page.getByText("Save as a profile").click();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("scripted");
  await runs(main, "save profile", /['"]?name['"]?: ?['"]scripted['"]/);
  await go(page, "Compare");
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.getByRole("figure", { name: /^Difference/ }).waitFor();
  await runs(page.locator(".result"), "both runs", /queued|running|next_tokens/);

  await go(page, "Inspect");
  await page.getByRole("button", { name: "Inspect", exact: true }).click();
  await page.getByRole("figure", { name: "Next token" }).waitFor();
  const result = page.locator(".result");
  await runs(result, "download files", /^(?:|[\s\S]*next_tokens[\s\S]*)$/);
  await runs(result.locator(":scope"), "", /queued|running|next_tokens/, ["curl"]);
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("a waiting job shows its cancel command, which runs", async () => {
  const { page, context } = await visit(bench);
  await go(page, "Probe");
  // It waits behind one whose worker never gives its result.
  setMeddle("hang", bench.folder);
  const lab = new Lab(bench.lab);
  const { id } = await lab.inspect("demo", "The capital of France is");
  await page.getByRole("button", { name: "Train and evaluate" }).click();
  await page.waitForURL(/\/probe\/[0-9a-f]{32}$/);
  const progress = page.getByRole("region", { name: "Progress" });
  const [curl] = Object.values(await codeOf(progress, "cancel"));
  assert.match(await runScript("curl", curl as string), /"status":"cancelled"/);
  await progress.getByText("The job was cancelled.").waitFor();
  await lab.cancel(id);
  setMeddle(undefined, bench.folder);
  ran.add("cancel");
  await context.close();
});

test("all scripts that actions have were run", () => {
  const scripts = Object.values(actions).flatMap((one) => ("script" in one ? [one.script] : []));
  assert.equal(
    [...new Set(scripts)].filter((script) => !ran.has(script)),
    ran.size === 0 ? [...new Set(scripts)] : [],
  );
});

test.run();
