/** The state of a browser's pages at a moment, printed where a test of pages fails, to explain the failure. */
import type { Browser, Page } from "playwright-core";

/** Of a page's text, of each thing in a list, and of each list. */
const most = { text: 1500, one: 160, list: 40 };
/** A page that does not answer by then hangs, and is reported as such. */
const patienceMs = 10_000;

/** In the page: everything that a user sees, has typed, and has the focus on. */
const shown = `(() => {
  const text = (one) => (one?.innerText ?? one?.textContent ?? "").replace(/\\s+/g, " ").trim();
  const nameOf = (one) => {
    const named = (one.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => text(document.getElementById(id)));
    return one.getAttribute("aria-label") || named.join(" ").trim() || text(one.labels?.[0]) || one.placeholder || text(one);
  };
  const isSet = (one) => (["checkbox", "radio"].includes(one.type) ? (one.checked ? "on" : "off") : JSON.stringify(one.value));
  const at = document.activeElement;
  const all = (selector, told) => [...document.querySelectorAll(selector)].map(told);
  return {
    title: document.title,
    text: text(document.body),
    focus: at === null ? "nothing" : [at.tagName.toLowerCase() + (at.id === "" ? "" : "#" + at.id), nameOf(at)].join(" "),
    alerts: all("[role=alert], .problem", text),
    fields: all("input:not([type=hidden]), textarea, select", (one) => nameOf(one) + " = " + isSet(one)),
    disabled: all(":is(button, input, select, textarea):disabled", nameOf),
  };
})()`;

interface Shown {
  title: string;
  text: string;
  focus: string;
  alerts: string[];
  fields: string[];
  disabled: string[];
}

/** Every open page in words: address, text, focus, alerts, the values of its fields, and its errors. */
export async function whatPagesShow(browser: Browser): Promise<string> {
  const pages = browser.contexts().flatMap((context) => context.pages());
  const told = await Promise.all(pages.map(describe));
  return told.length === 0 ? "No page is open." : told.join("\n");
}

async function describe(page: Page, index: number): Promise<string> {
  const lines = [`Page ${index + 1}, ${page.url()}`];
  try {
    const { title, text, focus, alerts, fields, disabled } = await inTime(page.evaluate<Shown>(shown));
    lines.push(`  title: ${title}`, `  focus: ${cut(focus)}`);
    lines.push(`  text: ${text.length > most.text ? `${text.slice(0, most.text)} …` : text}`);
    lines.push(...listed("alert", alerts), ...listed("field", fields), ...listed("disabled", disabled));
  } catch (error) {
    lines.push(`  It could not be looked at: ${(error as Error).message}`);
  }
  lines.push(...listed("console", await said(page)));
  return lines.join("\n");
}

/** Errors and warnings of a page, the latest last. */
async function said(page: Page): Promise<string[]> {
  const looked = inTime(Promise.all([page.pageErrors(), page.consoleMessages()]));
  const [errors, messages] = await looked.catch(() => [[], []] as const);
  const told = messages
    .filter((message) => ["error", "warning"].includes(message.type()))
    .map((message) => `${message.type()}: ${message.text()} (${message.location().url})`);
  return [...errors.map(String), ...told].slice(-most.list);
}

function listed(name: string, all: readonly string[]): string[] {
  const lines = all.slice(0, most.list).map((one) => `  ${name}: ${cut(one)}`);
  return all.length > most.list ? [...lines, `  and ${all.length - most.list} more`] : lines;
}

function cut(text: string): string {
  return text.length > most.one ? `${text.slice(0, most.one)} …` : text;
}

function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`it did not answer within ${patienceMs / 1000} s`)),
      patienceMs,
    );
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
