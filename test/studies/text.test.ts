/** How research text is read and judged. */
import { randomUUID } from "node:crypto";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { blocksOf } from "../../src/contracts/studies/index.js";
import { differences } from "../../src/studies/text/differences.js";
import { splitHidden } from "../../src/studies/text/hidden.js";
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
  const [a16, a17, a20, a22, a30, a35, a36] = [16, 17, 20, 22, 30, 35, 36].map((length) =>
    "A1b2".repeat(9).slice(0, length),
  );
  // What matches, and what is one character short of it or too long.
  for (const [kind, secret, ...others] of [
    ["token of this service", `tpl_${"a".repeat(49)}`, `tpl_${"a".repeat(48)}`, `tpl_${"a".repeat(50)}`],
    ["private key", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PUBLIC KEY-----", "BEGIN PRIVATE KEY"],
    ["private key", "-----BEGIN OPENSSH PRIVATE KEY-----", "-----BEGIN CERTIFICATE-----"],
    [
      "AWS access key",
      `AKIA${a16?.toUpperCase()}`,
      `AKIA${a16?.toUpperCase().slice(1)}`,
      `AKIA${a17?.toUpperCase()}`,
    ],
    ["AWS access key", `ASIA${a16?.toUpperCase()}`, `ABIA${a16?.toUpperCase()}`],
    ...["ghp", "gho", "ghu", "ghs", "ghr"].map((kind) => [
      "GitHub token",
      `${kind}_${a36}`,
      `${kind}_${a35}`,
      `ghx_${a36}`,
    ]),
    ["GitHub token", `github_pat_${a22}`, `github_pat_${a20}`],
    ["Hugging Face token", `hf_${a30}`, `hf_${a30?.slice(1)}`],
    ["API key", `sk-${a20}`, `sk-${a20?.slice(1)}`],
    ["API key", `sk-proj-${a20}`],
    ["Slack token", `xoxb-${a16}`, "xoxb-123456789", `xoxz-${a16}`],
    ["Google API key", `AIza${a35}`, `AIza${a35?.slice(1)}`],
    ["bearer credential", `authorization: bearer ${a20}`, `bearer ${a20?.slice(1)}`],
    ["password", "Password: hunter2", "password: abc", "the password is long"],
    ["password", "api_key=abcdef", "api-keys of others", "secret santa"],
    ["credentials in a URL", "postgres://me:pw@host/x", "https://host/x:y@z", "https://me@host"],
    ["home folder", "/home/ada", "/homely"],
    ["home folder", "/Users/ada", "/users/ada"],
    ["home folder", "C:\\Users\\ada", "C:\\Windows"],
    ["e-mail address", "ada@example.org", "ada@example", "@example.org"],
  ] as [string, string, ...string[]][]) {
    assert.equal(kinds(`see "${secret}" there`), [kind], secret);
    for (const other of others) assert.not(kinds(`see "${other}" there`).includes(kind), other);
  }
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
  // Where a kernel counts it in ticks, what takes less than one of them (at most 10 ms) may read as nothing.
  const plain = Math.max(work("lorem ipsum "), 10_000);
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

test("words are folded: case, accents, ligatures, in any alphabet", () => {
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

test("fenced code is separated from prose without losing a character of either", () => {
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
