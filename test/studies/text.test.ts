/** How research text is read and judged. */
import { randomUUID } from "node:crypto";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { differences } from "../../src/studies/text/differences.js";
import { splitHidden } from "../../src/studies/text/hidden.js";
import { blocksOf } from "../../src/studies/text/prose.js";
import { findSecrets } from "../../src/studies/text/secrets.js";
import { words } from "../../src/studies/text/words.js";
import { samplePackage } from "./support/packages.js";

test("hidden characters, likely secrets and differences are found", () => {
  const codes = (text: string) =>
    [...splitHidden(text)].flatMap((part) => (typeof part === "string" ? [] : [part.code]));
  assert.equal(codes("a\u202eb\u200bc\0\ud800\u{e0041}\ufeff"), [
    "U+202E",
    "U+200B",
    "U+0000",
    "U+D800",
    "U+E0041",
    "U+FEFF",
  ]);
  assert.equal(codes("Ärger\t\n日本語 😀 عربى"), []);
  const kinds = (text: string) => findSecrets({ a: [text] }).map(({ kind }) => kind);
  assert.equal(kinds("-----BEGIN RSA PRIVATE KEY-----"), ["private key"]);
  assert.equal(kinds(`hf_${"a".repeat(34)}`), ["Hugging Face token"]);
  assert.equal(kinds("https://me:pw@host/x"), ["credentials in a URL"]);
  assert.equal(kinds("/home/somebody/run"), ["home folder"]);
  assert.equal(kinds("the token distribution over secret agents"), []);
  assert.equal(kinds(`write to: someone.else@mail.example.org, or me@b.co`), [
    "e-mail address",
    "e-mail address",
  ]);
  assert.equal(kinds(`eyJ${"a".repeat(12)}.eyJ${"b".repeat(12)}.${"c".repeat(9)}`), ["JSON web token"]);
  // Texts made to be slow, which took up to a minute each: now about as much work as plain words are. Processor time,
  // the least of three, does not depend on what else runs.
  const work = (part: string) => {
    const text = part.repeat(100_000 / part.length);
    const once = () => {
      const before = process.cpuUsage();
      findSecrets({ a: text, b: `a@${text}`, c: `a://b:${text}` });
      return process.cpuUsage(before).user;
    };
    return Math.min(once(), once(), once());
  };
  const plain = work("lorem ipsum ");
  for (const hard of ["a.", "eyJ-", "a@", "a://b:", "b.c@", "-----BEGIN ", "password "]) {
    const took = work(hard);
    assert.ok(took < 100 * plain, `${hard}: ${took} microseconds; plain words take ${plain}`);
  }
  assert.is(findSecrets({ a: `tpl_${"a".repeat(49)}` })[0]?.start, "tpl_aaaaaaaa");
  const before = samplePackage();
  const added = { ...before.entries[0]!, id: randomUUID(), note: "new" };
  const after = { ...before, title: "Other", entries: [{ ...before.entries[0]!, prompt: "Changed" }, added] };
  assert.equal(
    differences(before, after).map(({ place }) => place.replace(/[0-9a-f-]{36}/, "id")),
    ["/title", "/entries/id/prompt", "/entries/id"],
  );
  assert.equal(differences(before, structuredClone(before)), []);
});

test("words are folded: case, accents, ligatures, whatever the alphabet", () => {
  assert.equal(words("Naïve STRASSE ﬁnal İstanbul x_y 3.5"), [
    "naive",
    "strasse",
    "final",
    "istanbul",
    "x",
    "y",
    "3",
    "5",
  ]);
  for (const [one, other] of [
    ["Straße", "STRASSE"],
    ["Σίσυφος", "ΣΙΣΥΦΟΣ"],
    ["Ёлка", "елка"],
  ] as const) {
    assert.equal(words(one), words(other));
  }
  assert.ok(words("ΛΟΓΟΣΑ")[0]?.startsWith(words("λόγος")[0] as string), "a word is a prefix of longer ones");
});

test("fenced code is told from prose, and no character of either is lost", () => {
  const shape = (text: string) =>
    blocksOf(text).map(({ code, label, text: part }) => (code ? `[${label}] ${part}` : part));
  assert.equal(shape("before\n```python\nx = 1\n\ny = 2\n```\nafter"), [
    "before",
    "[python] x = 1\n\ny = 2",
    "after",
  ]);
  assert.equal(shape("no fence, `code` and ```inline``` only"), ["no fence, `code` and ```inline``` only"]);
  assert.equal(
    shape("~~~\n```\n~~~~\nend"),
    ["[] ```", "end"],
    "another mark or a shorter one closes nothing",
  );
  assert.equal(shape("```\nopen to the end\n"), ["[] open to the end\n"]);
  assert.equal(shape("```hidden words\n```"), ["[hidden words] "], "what follows a fence is shown");
  assert.equal(shape("\n \n"), []);
  assert.is(blocksOf("```x\n".repeat(20_000)).length, 1);
});

test.run();
