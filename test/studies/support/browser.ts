import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { type RunningDevelopment, startDevelopment } from "../../../src/studies/dev/start.js";
import { aroundBrowser, newContext } from "../../support/browser.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-browser-"));

/** The service's log. */
export const log: string[] = [];
export let service: RunningDevelopment;

/** A development service with seed studies and a browser, for all tests of a file. */
export function aroundWebsite(): void {
  aroundBrowser({
    async start() {
      service = await startDevelopment({
        folder,
        port: 0,
        seedData: true,
        env: {},
        log: (line) => log.push(line),
      });
    },
    async end() {
      await service?.close();
      rmSync(folder, { recursive: true, force: true });
    },
  });
}

export function context(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  return newContext({ ignoreHTTPSErrors: true, ...options });
}

export async function signIn(page: Page, account: string): Promise<void> {
  await page.goto(`${service.origin}/sign-in`);
  await page.getByRole("button", { name: /Sign in with/ }).click();
  await page.getByRole("button", { name: account }).click();
  const navigation = page.getByRole("navigation", { name: "Main" });
  await navigation.getByRole("link", { name: account }).waitFor();
}

/** A request to the API as an agent makes it, trusting the development certificate alone. */
export function api(token: string, path: string, body?: string): Promise<{ status: number; text: string }> {
  const { port } = new URL(service.origin);
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const ca = readFileSync(service.certificateFile);
  return new Promise((resolve, reject) => {
    const method = body === undefined ? "GET" : "POST";
    const outgoing = request(
      { host: "localhost", family: 4, port, path, method, headers, ca },
      (incoming) => {
        let text = "";
        incoming.setEncoding("utf8");
        incoming.on("data", (part) => {
          text += part;
        });
        incoming.on("end", () => resolve({ status: incoming.statusCode as number, text }));
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
