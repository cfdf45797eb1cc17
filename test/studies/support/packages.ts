import { randomUUID } from "node:crypto";
import type { StudyPackage } from "../../../src/contracts/studies/index.js";
import { character, fc } from "../../support/fc.js";

/** A small valid package. */
export function samplePackage(change: Partial<StudyPackage> = {}): StudyPackage {
  return {
    schemaVersion: 1,
    title: "Refusal lives in one direction",
    question: "Does removing a single direction stop refusals?",
    hypothesis: "One direction suffices.",
    method: "Ablate the difference of means at block 12 on 64 prompts.",
    finding: "",
    limitations: "One small model.",
    license: "CC-BY-4.0",
    model: { name: "demo-2M", runtime: "tapline 0.2.0" },
    omissions: [],
    entries: [{ id: randomUUID(), kind: "prompt", title: "Baseline", prompt: "Tell me." }],
    ...change,
  };
}

const text = (maxLength: number, minLength = 0) =>
  fc
    .oneof(
      {
        weight: 6,
        arbitrary: fc.string({ minLength, maxLength: Math.min(maxLength, 40), unit: "grapheme" }),
      },
      { weight: 2, arbitrary: fc.string({ minLength, maxLength: Math.min(maxLength, 40), unit: character }) },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          "a\u0000b",
          "\ud800x",
          "x\udfff",
          "\u202eevil",
          "日本語",
          "😀".repeat(3),
          '"\\/\n',
        ),
      },
    )
    .map((value) => {
      const points = [...value].slice(0, maxLength);
      while (points.length < minLength) points.push("é");
      return points.join("");
    });

/** Whether a title has a letter, digit or sign that is drawn; Hangul fillers and the empty Braille cell are not. */
function isSeen(title: string): boolean {
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(title.replace(/[\u115f\u1160\u3164\uffa0\u2800]/g, ""));
}

const uuid = fc.oneof(
  { weight: 9, arbitrary: fc.uuid() },
  { weight: 1, arbitrary: fc.uuid().map((id) => id.toUpperCase()) },
);

const entry = fc.record(
  {
    id: uuid,
    kind: fc.constantFrom("prompt", "result", "note", "error"),
    title: text(300),
    model: text(300),
    system: text(500),
    context: fc.array(
      fc.record({ role: fc.constantFrom("system", "user", "assistant"), content: text(500) }),
      { maxLength: 3 },
    ),
    prompt: text(500),
    answer: text(500),
    thinking: text(500),
    note: text(500),
    settings: fc.record({
      temperature: fc.double({ min: 0, max: 10, noNaN: true }),
      seed: fc.maxSafeInteger(),
      maxTokens: fc.integer({ min: 1, max: 1_000_000 }),
      thinking: fc.constantFrom("on", "off", "default"),
    }),
    finishReason: fc.oneof(fc.constant(null), text(100)),
  },
  { requiredKeys: ["id", "kind", "title"] },
);

/** Valid packages: every optional field present or absent, entries a random forest. */
export const packages: fc.Arbitrary<StudyPackage> = fc
  .record({
    schemaVersion: fc.constant(1),
    title: text(160, 1).map((title) => (isSeen(title) ? title : "Untitled")),
    question: text(4000, 1),
    hypothesis: text(3000),
    method: text(8000, 1),
    finding: text(3000),
    limitations: text(8000, 1),
    license: fc.constantFrom("CC-BY-4.0", "CC0-1.0"),
    model: fc.record(
      { name: text(300, 1), revision: fc.oneof(fc.constant(null), text(200)), runtime: text(200) },
      { requiredKeys: ["name", "runtime"] },
    ),
    omissions: fc.array(text(1000), { maxLength: 4 }),
    entries: fc
      .uniqueArray(entry, { minLength: 1, maxLength: 8, selector: ({ id }) => id.toLowerCase() })
      .chain((entries) =>
        fc.tuple(
          fc.constant(entries),
          fc.array(fc.option(fc.nat(), { freq: 3 }), {
            minLength: entries.length,
            maxLength: entries.length,
          }),
        ),
      )
      .map(([entries, parents]) =>
        entries.map((value, index) => {
          const choice = parents[index];
          if (choice === null || choice === undefined)
            return index % 2 === 0 ? value : { ...value, parent: null };
          const parent = entries[choice % entries.length] as { id: string };
          // Parents come earlier in the list, so no cycle can arise.
          return choice % entries.length < index ? { ...value, parent: parent.id } : value;
        }),
      ),
  })
  .map((value) => value as unknown as StudyPackage);
