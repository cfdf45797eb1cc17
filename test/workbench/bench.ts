/** A workbench with its page, in front of a server and a Lab of this process: for tests in a browser. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { buildPage } from "../../scripts/build/page.js";
import { startLab } from "../../src/lab/index.js";
import { estimateMemory } from "../../src/native/index.js";
import { type ModelHost, startWorkbench, type WorkbenchService } from "../../src/workbench/index.js";
import { startServer } from "../inference/support/serving.js";
import { newContext } from "../support/browser.js";
import { compiledWorker } from "../support/program.js";

export interface Bench {
  folder: string;
  /** Where the Lab is reached. */
  lab: string;
  workbench: WorkbenchService;
  /** Ends the workbench and starts another at the same port. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

interface Services {
  server: string;
  lab: string;
  close(): Promise<unknown>;
  /** Absent: a server of somebody else's. */
  serve?: ModelHost["serve"];
}

/**
 * The page is built to a separate folder, next to the services' files.
 * @param services the services behind the workbench; a model and a Lab by default
 * @param model the embedded one by default
 */
export async function startBench(
  services: (folder: string, model: string) => Promise<Services> = real,
  model = "demo",
): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), "tapline-bench-"));
  const page = join(folder, "page");
  const [{ server, lab, close, serve }] = await Promise.all([services(folder, model), buildPage(page)]);
  const models: ModelHost = { layOut: (path) => estimateMemory({ path }), ...(serve && { serve }) };
  const start = (port: number) => startWorkbench({ port, home: folder, server, lab, model, models, page });
  const bench: Bench = {
    folder,
    lab,
    workbench: await start(0),
    async restart() {
      const { port } = bench.workbench;
      await bench.workbench.close();
      bench.workbench = await start(port);
    },
    async close() {
      await bench.workbench.close();
      await close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return bench;
}

async function real(home: string, model: string): Promise<Services> {
  const [server, lab] = await Promise.all([
    startServer({ home, model, parallel: 4 }),
    startLab({ port: 0, home, queueCapacity: 8, backend: "cpu", ...compiledWorker }),
  ]);
  return { server: server.url, lab: lab.url, close: () => Promise.all([server.close(), lab.close()]) };
}

export interface Visit {
  context: BrowserContext;
  page: Page;
  /** Errors, refusals of the policy, and requests for anything but the workbench. */
  troubles: string[];
}

/** A separate browser that opens a link, and all of its errors. */
export async function visit(bench: Bench, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await newContext({ acceptDownloads: true, ...options });
  const troubles: string[] = [];
  context.on("page", (page) => watch(page, bench.workbench.url, troubles));
  const page = await context.newPage();
  await page.goto(bench.workbench.link());
  await page.getByRole("navigation", { name: "Views" }).waitFor();
  return { context, page, troubles };
}

function watch(page: Page, own: string, troubles: string[]): void {
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) troubles.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(`${own}/`) && !request.url().startsWith("blob:"))
      troubles.push(request.url());
  });
}
