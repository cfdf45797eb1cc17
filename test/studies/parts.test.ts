/** Small parts of the service by themselves: addresses, windows, queries, texts. */
import type { Context } from "koa";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { blocksOf, type StudyPackage } from "../../src/contracts/studies/index.js";
import {
  integerParameter,
  offsetParameter,
  parseQuery,
  searchParameter,
} from "../../src/studies/api/query.js";
import { clientAddress, isSecure } from "../../src/studies/http/transport.js";
import type { Service } from "../../src/studies/service.js";
import { html } from "../../src/studies/site/html.js";
import { Pace } from "../../src/studies/site/pace.js";
import { packageView } from "../../src/studies/site/pages/package-view.js";
import { Reveal } from "../../src/studies/site/reveal.js";
import { windowState } from "../../src/studies/store/window.js";
import { isBlank } from "../../src/studies/text/blank.js";
import { displayable, firstCharacters } from "../../src/studies/text/display.js";
import { samplePackage } from "./support/packages.js";

const behind = (...trustedProxies: string[]) => ({ trustedProxies }) as unknown as Service;
const direct = { trustedProxies: null } as unknown as Service;
const from = (remoteAddress: string | undefined, headers: Record<string, string> = {}, encrypted = false) =>
  ({ req: { socket: { remoteAddress, encrypted }, headers } }) as unknown as Context;

test("HTTPS is decided by this process or by a named proxy", () => {
  const says = (proto: string) => ({ "x-forwarded-proto": proto });
  assert.ok(isSecure(direct, from("192.0.2.1", {}, true)));
  assert.not(isSecure(direct, from("192.0.2.1", says("https"))));
  assert.ok(isSecure(behind("10.0.0.1"), from("::ffff:10.0.0.1", says("https"))));
  assert.not(isSecure(behind("10.0.0.1"), from("10.0.0.1", says("http"))));
  assert.not(isSecure(behind("10.0.0.1"), from("10.0.0.1")));
  assert.not(isSecure(behind("10.0.0.1"), from("10.0.0.2", says("https"))));
});

test("the client address is the last one outside named proxies; for IPv6 its network", () => {
  const forwarded = (list: string) => ({ "x-forwarded-for": list });
  for (const [service, ctx, address] of [
    [direct, from("192.0.2.1", forwarded("203.0.113.9")), "192.0.2.1"],
    [direct, from("::ffff:192.0.2.1"), "192.0.2.1"],
    [direct, from(undefined), ""],
    [behind("10.0.0.1"), from("10.0.0.2", forwarded("203.0.113.9")), "10.0.0.2"],
    [behind("10.0.0.1"), from("10.0.0.1", forwarded("198.51.100.7, 203.0.113.9")), "203.0.113.9"],
    [behind("10.0.0.1", "10.0.0.2"), from("10.0.0.1", forwarded("203.0.113.9, 10.0.0.2")), "203.0.113.9"],
    [behind("10.0.0.1"), from("10.0.0.1", forwarded("203.0.113.9, ")), "203.0.113.9"],
    [behind("10.0.0.1"), from("10.0.0.1"), "10.0.0.1"],
    [behind("10.0.0.1"), from("10.0.0.1", forwarded("::ffff:203.0.113.9")), "203.0.113.9"],
    [behind("10.0.0.1"), from("10.0.0.1", forwarded("x".repeat(100))), "x".repeat(64)],
    [direct, from("2001:db8:0:42:1::7"), "2001:db8:0:42::/64"],
    [direct, from("2001:0db8::1"), "2001:db8:0:0::/64"],
    [direct, from("fe80::1%eth0"), "fe80:0:0:0::/64"],
    [direct, from("::1"), "0:0:0:0::/64"],
    [direct, from("2001:db8:a:b:c:d:e:f"), "2001:db8:a:b::/64"],
    [direct, from("2001:db8:a:b::"), "2001:db8:a:b::/64"],
    [direct, from("1:2:3:4:5::8"), "1:2:3:4::/64"],
  ] as const) {
    assert.is(clientAddress(service, ctx), address);
  }
});

test("a rate window reports what is left and the seconds until the oldest entry leaves", () => {
  const window = { column: "recent", most: 3, lengthMs: 60_000 };
  const state = (times: number[], now: number) => {
    const { limit, remaining, resetSeconds } = windowState(window, JSON.stringify(times), now);
    return [limit, remaining, resetSeconds];
  };
  assert.equal(state([], 100_000), [3, 3, 0]);
  assert.equal(state([100_000], 100_000), [3, 2, 60]);
  assert.equal(state([100_000, 130_000], 130_500), [3, 1, 30]);
  assert.equal(state([100_000], 159_999), [3, 2, 1]);
  // At its length exactly it has left.
  assert.equal(state([100_000, 101_000], 160_000), [3, 2, 1]);
  assert.equal(state([1, 2, 3, 4, 5], 5), [3, 0, 60]);
});

function refusal(run: () => unknown): [string, string, string] {
  try {
    run();
  } catch (error) {
    const { code, message, field } = error as { code: string; message: string; field: string };
    return [code, message, field];
  }
  return ["accepted", "", ""];
}

test("query parameters must be known, unique and UTF-8; numbers use plain digits", () => {
  const query = (text: string) => parseQuery(text, ["q", "limit", "offset"]);
  assert.equal(
    [...query("q=a+b%20c&&limit=5&offset")],
    [
      ["q", "a b c"],
      ["limit", "5"],
      ["offset", ""],
    ],
  );
  assert.equal([...query("")], []);
  assert.equal([...query("q=a=b")], [["q", "a=b"]]);
  assert.equal(
    refusal(() => query("x=1")),
    ["unknown_parameter", "Unknown query parameter; this endpoint accepts: q, limit, offset.", "x"],
  );
  assert.match(refusal(() => parseQuery(`${"y".repeat(150)}=1`, []))[1], "this endpoint accepts: none.");
  assert.is(refusal(() => parseQuery(`${"y".repeat(150)}=1`, []))[2], "y".repeat(100));
  assert.equal(
    refusal(() => query("q=1&q=2")),
    ["repeated_parameter", "The query parameter q occurs more than once.", "q"],
  );
  assert.equal(
    refusal(() => query("q=%ff")),
    ["invalid_parameter", "The query must be percent-encoded UTF-8.", "q"],
  );
  assert.is(refusal(() => query("%ff=1"))[2], "query");

  const number = (text: string | undefined) =>
    integerParameter(new Map(text === undefined ? [] : [["limit", text]]), "limit", {
      minimum: 1,
      maximum: 50,
      otherwise: 20,
    });
  assert.equal([number(undefined), number("1"), number("50"), number("7")], [20, 1, 50, 7]);
  for (const text of ["0", "51", "", "-1", "+1", "1.0", "01", " 1", "1e1", "0x1", "9".repeat(10)]) {
    assert.equal(
      refusal(() => number(text)),
      ["invalid_parameter", "limit must be an integer from 1 to 50, in decimal digits.", "limit"],
    );
  }
  const offset = (text?: string) => offsetParameter(new Map(text === undefined ? [] : [["offset", text]]));
  assert.equal([offset(), offset("0"), offset("10000")], [0, 0, 10_000]);
  assert.is(refusal(() => offset("10001"))[0], "invalid_parameter");
  const search = (text?: string) => searchParameter(new Map(text === undefined ? [] : [["q", text]]));
  assert.equal([search(), search("x"), search("😀".repeat(160))], ["", "x", "😀".repeat(160)]);
  assert.is(refusal(() => search("x".repeat(161)))[2], "q");
});

test("texts: blank ones, what columns hold, the first characters", () => {
  for (const text of ["", " \n\t", "\u200b\u2800", "\u00ad\u3000"])
    assert.ok(isBlank(text), JSON.stringify(text));
  for (const text of ["a", " .", "\u200bä", "😀"]) assert.not(isBlank(text), text);
  assert.is(displayable("a\0b\ud800c😀"), "a\ufffdb\ufffdc😀");
  assert.equal(
    [firstCharacters("😀😀", 1), firstCharacters("ab", 2), firstCharacters("abc", 2)],
    ["😀", "ab", "ab"],
  );
});

test("prose and fenced code", () => {
  const blocks = (text: string, most?: number) =>
    blocksOf(text, most).map(({ code, label, text: body }) => [code, label, body]);
  assert.equal(blocks("a\n\n   ```py x \nb\n```\nc"), [
    [false, "", "a\n"],
    [true, "py x", "b"],
    [false, "", "c"],
  ]);
  assert.equal(blocks("```\n"), [[true, "", ""]]);
  assert.equal(blocks("~~~\n```\n~~\n~~~~\n"), [[true, "", "```\n~~"]]);
  assert.equal(blocks("````\n```\n`````"), [[true, "", "```"]]);
  assert.equal(blocks("    ```\nx"), [[false, "", "    ```\nx"]]);
  assert.equal(blocks("``` a`b\nx"), [[false, "", "``` a`b\nx"]]);
  assert.equal(blocks("```a\n``` b\n```"), [[true, "a", "``` b"]]);
  assert.equal(blocks("a\n```\nb\n```\nc\n```\nd", 2), [
    [false, "", "a"],
    [true, "", "b"],
    [false, "", "c\n```\nd"],
  ]);
  assert.equal(blocks(" \n "), []);
});

test("a page labels 2,000 hidden characters and counts the rest", () => {
  const reveal = new Reveal();
  assert.is(
    reveal.show("a\u202eb").markup,
    'a<span class="hidden-char" title="right-to-left override">U+202E</span>b',
  );
  assert.is(
    reveal.show("\u200b\u200b").markup,
    '<span class="hidden-char" title="zero width space">U+200B ×2</span>',
  );
  const before = reveal.show("x\u200b".repeat(1998)).markup;
  assert.is(before.split("<span").length - 1, 1998);
  assert.is(reveal.notice(), null);
  assert.is(reveal.show("x\u200b\u200by\u202e").markup, "x▯y▯");
  assert.match(reveal.notice()?.markup ?? "", "2002 places");
});

test("a package view stops before the page gets too large, and lists what it omits", async () => {
  const shown = (text: string) => html`${text}`;
  const options = () => ({ shown, pace: new Pace(), source: false });
  const view = async (change: Partial<StudyPackage>) =>
    (await packageView(samplePackage(change) as StudyPackage, options())).markup;
  const whole = await view({ omissions: ["left", "out"] });
  for (const heading of ["Question", "Method", "Limitations", "Omissions", "Entries"]) {
    assert.match(whole, new RegExp(`<h2 id="[a-z-]+">${heading}</h2>`));
  }
  assert.not.match(whole, "more texts are not shown");
  assert.not.match(await view({ hypothesis: "", omissions: [] }), /Hypothesis|Omissions/);
  // 3,000,000 characters of markup: the 31st text of 100,000 starts within them, and nothing follows it.
  const entry = (index: number) => ({
    id: `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`,
    kind: "observation",
    title: "",
    note: "n".repeat(100_000),
  });
  const short = { question: "", hypothesis: "", method: "", finding: "", limitations: "", omissions: [] };
  const entries = Array.from({ length: 33 }, (_, index) =>
    entry(index),
  ) as unknown as StudyPackage["entries"];
  const cut = await view({ ...short, entries });
  assert.is(cut.split("n".repeat(100_000)).length - 1, 30);
  assert.match(cut, "3 more texts");
  // Deeper than six levels nothing is moved further in.
  const deep = Array.from({ length: 9 }, (_, index) => ({
    ...entry(index),
    note: "",
    parent: index === 0 ? null : entry(index - 1).id.toUpperCase(),
  })) as unknown as StudyPackage["entries"];
  const levels = [...(await view({ ...short, entries: deep })).matchAll(/<ul class="(tree[\w-]*)">/g)].map(
    (found) => found[1],
  );
  assert.equal(levels, ["tree", ...Array(6).fill("tree-level"), "tree-deep", "tree-deep"]);
});

test.run();
