import type { DriftResult } from "../contracts/index.js";
import { atLayers, type Finding, layersOf, rangeOf, sentence } from "./finding.js";
import { count, figureOf } from "./numbers.js";
import { bestSpan, type Span, shapeOf } from "./shapes.js";

/** Cosines above this hardly differ from 1. */
const nearlyEqual = 0.999;
const behavior = "whether the models answer differently, only their answers show";

/** At which layers two models' block outputs differ, and whether the choice of texts explains it. */
export function driftFinding({ layers, texts }: Pick<DriftResult, "layers" | "texts">): Finding {
  const sorted = layers.toSorted((a, b) => a.layer - b.layer);
  const numbers = sorted.map(({ layer }) => layer);
  const far = sorted.map(({ cosine }) => 1 - cosine.value);
  const shape = shapeOf(far, 1 - nearlyEqual);
  const last = sorted.length - 1;
  const cosines = (of: readonly { cosine: { value: number } }[]) =>
    `cosine ${rangeOf(
      of.map(({ cosine }) => cosine.value),
      figureOf,
    )}`;
  const over = `The 95 % intervals over ${count(texts, "text")}`;
  if (shape.kind === "none" || shape.kind === "flat") {
    const where = atLayers({ from: 0, to: last }, numbers);
    const equally = last === 0 ? "" : " about equally";
    const [low, high] = [
      Math.min(...sorted.map(({ cosine }) => cosine.low)),
      Math.max(...sorted.map(({ cosine }) => cosine.high)),
    ];
    return {
      says:
        shape.kind === "none"
          ? `The two models' block outputs hardly differ ${last === 0 ? where : "at any layer measured"} (${cosines(sorted)}).`
          : `The two models' block outputs differ${equally} ${where} (${cosines(sorted)}).`,
      controls: `${over} reach from ${figureOf(low)} to ${figureOf(high)}; ${behavior}.`,
    };
  }
  const span: Span =
    shape.kind === "onset"
      ? { from: shape.at, to: last }
      : shape.kind === "until"
        ? { from: 0, to: shape.at }
        : bestSpan(far);
  const inside = sorted.slice(span.from, span.to + 1);
  const others = [...sorted.slice(0, span.from), ...sorted.slice(span.to + 1)];
  const closer = `closer (${cosines(others)})`;
  const further = `differ more (${cosines(inside)})`;
  const at = (from: number, to: number) => atLayers({ from, to }, numbers);
  const says =
    shape.kind === "onset"
      ? `${at(0, span.from - 1)} the two models' block outputs are ${closer}; ${at(span.from, last)}, they ${further}`
      : shape.kind === "until"
        ? `${at(0, span.to)} the two models' block outputs ${further}; ${at(span.to + 1, last)}, they are ${closer}`
        : `the two models' block outputs differ most at ${layersOf(span, numbers)} (${cosines(inside)}); elsewhere they are ${closer}`;
  const apart =
    Math.max(...inside.map(({ cosine }) => cosine.high)) <
    Math.min(...others.map(({ cosine }) => cosine.low));
  return {
    says: `${sentence(says)}.`,
    controls: apart
      ? `${over} at these layers and at the others do not overlap, so the choice of texts does not explain the difference; ${behavior}.`
      : `${over} at these layers and at the others overlap, so the choice of texts may explain the difference; ${behavior}.`,
  };
}
