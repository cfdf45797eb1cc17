/**
 * The text and figures of reports of small results, as in recorded/findings.txt: written once, then read against these numbers.
 * After an intended change of a figure, read it again and change the file.
 */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { drawFigure } from "../../src/report/index.js";
import { recordedTexts } from "../support/recorded.js";
import { saidCases } from "./small-findings.js";
import { told } from "./told.js";

const read = (file: string) => recordedTexts(new URL(`./recorded/${file}.txt`, import.meta.url));
const recorded = read("findings");

for (const [name, made] of saidCases) {
  test(`a report of ${name} matches the recorded, reviewed text`, () => {
    assert.is(told(made()), recorded.get(name) as string);
  });
}

test("every recorded text is used", () => {
  assert.equal(
    [...recorded.keys()],
    saidCases.map(([name]) => name),
  );
});

test("figures without script are drawn as they were looked at in a browser", () => {
  const drawings = read("drawings");
  const drawn = new Set([...drawings.keys()].map((name) => name.split(" ")[0]));
  const all = saidCases
    .filter(([name]) => drawn.has(name))
    .flatMap(([name, made]) =>
      made().parts.flatMap((part) => ("chart" in part ? [{ name: `${name} ${part.id}`, part }] : [])),
    );
  assert.equal(
    all.map(({ name }) => name),
    [...drawings.keys()],
  );
  for (const { name, part } of all) {
    const markup = drawFigure(part, 420).map((one) => one.markup);
    assert.is(markup.join("\n").replaceAll("><", ">\n<"), drawings.get(name) as string, name);
  }
});

test.run();
