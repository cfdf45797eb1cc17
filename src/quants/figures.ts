import { measured } from "../card/measure.js";
import type { Measured } from "../findings/uncertainty.js";
import type { SpeedLine, TextLine } from "./measure.js";
import type { QuantsFile, QuantsForm } from "./result.js";

const bare = ({ value, low, high }: Measured): Measured => ({ value, low, high });
const exponential = ({ value, low, high }: Measured): Measured => ({
  ...{ value: Math.exp(value), low: Math.exp(low), high: Math.exp(high) },
});

/** A form's figures on the texts, with intervals over them; longer texts weigh more. */
export function textFigures(
  lines: readonly TextLine[],
  seed: number,
): Pick<QuantsForm, "divergence" | "agreement" | "perplexity" | "perplexity_ratio"> & {
  reference: Measured;
} {
  const weights = lines.map(({ tokens }) => tokens);
  const items = (of: (line: TextLine) => number) => ({
    values: lines.map((line) => of(line) / line.tokens),
    weights,
  });
  const [reference, form] = [items(({ loss }) => loss[0]), items(({ loss }) => loss[1])];
  const loss = measured(form, reference, seed);
  return {
    divergence: bare(
      measured(
        items((line) => line.divergence),
        undefined,
        seed,
      ),
    ),
    agreement: bare(
      measured(
        items(({ agreed }) => agreed),
        undefined,
        seed,
      ),
    ),
    perplexity: exponential(loss),
    perplexity_ratio: exponential(loss.change as Measured),
    reference: exponential(measured(reference, undefined, seed)),
  };
}

/** Of one model, with intervals over the rounds. */
export function speedFigures(lines: readonly SpeedLine[], model: number, seed: number): QuantsFile["speed"] {
  const own = lines.filter((line) => line.model === model);
  const of = (name: "prompt" | "generation") =>
    bare(measured({ values: own.map((line) => line[name]) }, undefined, seed));
  return { prompt: of("prompt"), generation: of("generation") };
}
