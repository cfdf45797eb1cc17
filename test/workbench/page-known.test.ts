/** What the page knows of conversations while it reads and hears of them, and where an answer that comes late leads. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Conversation, Numbered, State, Turn, WorkbenchEvent } from "../../src/workbench/wire.js";
import { pageModule } from "./page-modules.js";

const { known, readConversation, readState, take } = await pageModule<{
  known: { state: State | undefined; conversations: Map<string, Conversation> };
  readConversation(id: string): Promise<void>;
  readState(): Promise<void>;
  take(numbered: Numbered): boolean;
}>("store");
interface Ways {
  go(path: string): void;
  select(values: Record<string, string | undefined>): void;
}
const { go, onward } = await pageModule<{ go(path: string): void; onward(): Ways }>("router");

let location = { pathname: "/chat", search: "" };
const asked: string[] = [];
let answer: (path: string) => unknown = () => ({});
const lead = (_: unknown, __: string, path: string) => {
  const [pathname = "", search] = path.split("?");
  location = { pathname, search: search === undefined ? "" : `?${search}` };
};
const browser = {
  localStorage: { getItem: () => "s", removeItem: () => {} },
  history: { pushState: lead, replaceState: lead },
  fetch: async (path: string) => {
    asked.push(path);
    return Response.json(await answer(path));
  },
};
const saved = new Map<string, PropertyDescriptor | undefined>();
const define = (name: string, descriptor: PropertyDescriptor) => {
  saved.set(name, Object.getOwnPropertyDescriptor(globalThis, name));
  Object.defineProperty(globalThis, name, { configurable: true, ...descriptor });
};
for (const [name, value] of Object.entries(browser)) define(name, { value });
define("location", { get: () => location });
test.after(() => {
  for (const [name, descriptor] of saved) {
    if (descriptor === undefined) Reflect.deleteProperty(globalThis, name);
    else Object.defineProperty(globalThis, name, descriptor);
  }
});
test.before.each(() => {
  asked.length = 0;
  known.conversations.clear();
  known.state = stateOf(4);
});

const stateOf = (number: number, ...ids: string[]) =>
  ({ number, conversations: ids.map((id) => ({ id })), jobs: [] }) as unknown as State;
const turnOf = (question: string, ...texts: string[]): Turn => ({
  ...{ question, request: { path: "/", body: {} }, interventions: [], layers: [], kept: 0 },
  answers: [{ state: "running", edited: true, finish: null, tokens: texts.map((text) => ({ text })) }],
});
const conversationOf = (id: string, ...turns: Turn[]): Conversation => ({
  ...{ id, title: id, created: 1, raw: false, turns },
});
const asking = (index: number, question: string): WorkbenchEvent => ({
  ...{ type: "turn", conversation: "c", index, turn: turnOf(question) },
});
const saying = (at: number, ...texts: string[]): WorkbenchEvent => ({
  ...{ type: "tokens", conversation: "c", turn: 0, answer: 0, at },
  tokens: texts.map((text) => ({ text })),
});

test("events during loading follow the loaded messages without duplicates", async () => {
  let arrive = (_: unknown) => {};
  answer = () =>
    new Promise((resolve) => {
      arrive = resolve;
    });
  const read = readConversation("c");
  assert.ok(take({ number: 5, event: asking(0, "as it was at five") }));
  assert.ok(take({ number: 6, event: asking(1, "six") }));
  assert.ok(take({ number: 7, event: { ...asking(0, "another's"), conversation: "d" } as WorkbenchEvent }));
  arrive({ number: 5, conversation: conversationOf("c", turnOf("as it is")) });
  await read;
  assert.equal(
    known.conversations.get("c")?.turns.map(({ question }) => question),
    ["as it is", "six"],
  );
  assert.is(known.state?.number, 7);
});

test("tokens take their positions, and a gap before them is reported", () => {
  known.conversations.set("c", conversationOf("c", turnOf("q", "a")));
  const texts = () => known.conversations.get("c")?.turns[0]?.answers[0]?.tokens.map(({ text }) => text);
  assert.ok(take({ number: 5, event: saying(1, "b", "c") }));
  assert.ok(take({ number: 6, event: saying(2, "C", "d") }), "what was told before is told again");
  assert.equal(texts(), ["a", "b", "C", "d"]);
  assert.not(take({ number: 7, event: saying(5, "f") }));
  assert.equal(texts(), ["a", "b", "C", "d"]);
  assert.not(take({ number: 9, event: saying(4, "e") }), "an event is missing");
  assert.equal(texts(), ["a", "b", "C", "d"]);
});

test("after a gap the conversations that are still there are read, and no others", async () => {
  for (const id of ["gone", "here"]) known.conversations.set(id, conversationOf(id));
  answer = (path) =>
    path === "/api/state"
      ? stateOf(8, "here", "unread")
      : { number: 8, conversation: conversationOf("here", turnOf("new")) };
  await readState();
  assert.equal(asked, ["/api/state", "/api/conversations/here"]);
  assert.is(known.conversations.get("here")?.turns.length, 1);
  assert.is(known.state?.number, 8);
});

test("an answer that comes late leads nowhere once one has gone on", () => {
  const at = () => location.pathname + location.search;
  go("/jobs");
  const [first, second, third] = [onward(), onward(), onward()];
  second.go("/jobs/2");
  assert.is(at(), "/jobs/2");
  first.go("/jobs/1");
  assert.is(at(), "/jobs/2", "what was asked for before it does not lead back");
  third.go("/jobs/3");
  assert.is(at(), "/jobs/3", "what was asked for behind it leads on");
  const late = onward();
  go("/chat");
  late.go("/jobs/4");
  late.select({ a: "1" });
  assert.is(at(), "/chat");
  const away = onward();
  onward().go("/patch/5");
  away.go("/chat/6");
  assert.is(at(), "/patch/5", "another view is somewhere else");
});

test.run();
