import type { InspectResult, Standing } from "../../contracts/index.js";
import { shareEnd } from "../../findings/axes.js";
import type { Figure, Shade } from "../../findings/figure.js";
import { dataOf, tabled } from "../../findings/figure.js";
import { followedLayers, type LensReading, lensReadings, viewValues } from "../../findings/lens.js";
import { figureOf, leastEntropy, mean, percent, shortNumber } from "../../findings/numbers.js";
import { answerAt } from "../../findings/story.js";
import { visible } from "../../text/visible.js";

/** The notes of the layers, without repeats. */
export function notesOf(layers: InspectResult["layers"]): string[] {
  return [...new Set(layers.flatMap(({ note }) => (note === undefined ? [] : [note])))];
}

/** What every block's output predicts, token by token, through each requested lens. */
export function lens(result: InspectResult): Figure[] {
  const { tokens, layers } = result;
  const readings = lensReadings(result);
  if (readings.length === 0) return [];
  const several = readings.length > 1;
  const norms = new Map(layers.map(({ layer, norms }) => [layer, norms]));
  const read = readings.flatMap(({ name, layers: found }) =>
    found.map((one) => ({ ...one, name, norms: norms.get(one.layer) ?? [] })),
  );
  const cells = read.flatMap(({ name, layer, predictions }) =>
    predictions.map((candidates, position) => ({ name, layer, position, candidates })),
  );
  const ranks = Math.max(...cells.map(({ candidates }) => candidates.length));
  const quantities = lensQuantities(result, read);
  const top: Shade = {
    value: "probability_1",
    label: "token_1",
    legend: `probability of ${several ? "each" : "the"} lens's top token`,
    scale: "probability",
  };
  return [
    {
      id: "logit-lens",
      title: several ? "Lens readings" : "Logit lens",
      description:
        `What each block's output predicts after each token${several ? ", through each lens" : ""}. The ` +
        "deepest block is on top; the text runs from left to right. " +
        `Hover over a cell for its top ${ranks} tokens (also in the CSV).`,
      chart: {
        kind: "tokens",
        tokens: tokens.map(visible),
        ...top,
        ...(several && { panel: "lens" }),
        shades: [
          { id: "probability", name: "probability of the top token", ...top },
          ...quantities.map(({ id, name, legend, scale, shown }) => ({
            id,
            name,
            value: id,
            label: shown === undefined ? "token_1" : `${id}_shown`,
            legend,
            scale,
          })),
        ],
      },
      columns: [
        { name: "layer", label: "layer" },
        { name: "position", label: "position" },
        { name: "input", label: "input token" },
        ...(several ? [{ name: "lens", label: "lens" }] : []),
        ...Array.from({ length: ranks }, (_, rank) => [
          { name: `token_${rank + 1}`, label: `token ${rank + 1}` },
          { name: `probability_${rank + 1}`, label: `probability ${rank + 1}` },
        ]).flat(),
        ...quantities.flatMap(({ id, name, shown }) => [
          { name: id, label: name },
          ...(shown === undefined ? [] : [{ name: `${id}_shown`, label: `${name}, as shown` }]),
        ]),
      ],
      rows: cells.map(({ name, layer, position, candidates }, cell) => [
        layer,
        position,
        visible(tokens[position] as string),
        ...(several ? [name] : []),
        ...Array.from({ length: ranks }, (_, rank) => {
          const candidate = candidates[rank];
          return candidate === undefined ? [null, null] : [visible(candidate.token), candidate.probability];
        }).flat(),
        ...quantities.flatMap(({ values, shown }) => {
          const value = values[cell] ?? null;
          return shown === undefined ? [value] : [value, value === null ? null : shown(value)];
        }),
      ]),
      details: cells.map(({ name, layer, position, candidates }, cell) =>
        [
          `${several ? `${name}, ` : ""}layer ${layer}, after ${visible(tokens[position] as string)} (token ${position})`,
          ...candidates.map(({ token, probability }) => `${visible(token)}  ${percent(probability)}`),
          ...quantities.flatMap(({ values, line }) => {
            const value = values[cell];
            return value === undefined ? [] : [line(value)];
          }),
        ].join("\n"),
      ),
      notes: notesOf(layers),
      table: {
        head: ["token", ...read.map(({ name, layer }) => `${several ? `${name}, ` : ""}layer ${layer}`)],
        rows: tokens.map((token, position) => [
          visible(token),
          ...read.map(({ predictions }) => {
            const best = predictions[position]?.[0];
            return best === undefined ? "" : `${visible(best.token)} ${percent(best.probability)}`;
          }),
        ]),
      },
    },
    ...divergenceByLayer(readings),
  ];
}

/** How close each lens is to the model's output, block by block: the mean over the tokens. */
function divergenceByLayer(readings: readonly LensReading[]): Figure[] {
  const points = readings.flatMap(({ name, layers }) =>
    layers.flatMap(({ layer, divergences = [] }) =>
      divergences.length === 0 ? [] : [{ name, layer, mean: mean(divergences) }],
    ),
  );
  if (points.length < 3) return [];
  const layers = [...new Set(points.map(({ layer }) => layer))].sort((a, b) => a - b);
  const names = [...new Set(points.map(({ name }) => name))];
  return [
    {
      id: "divergence-by-layer",
      title: "Distance to the output by layer",
      description:
        "KL divergence of the reading at each block from the model's output, in nats, mean over this text; 0 means " +
        "identical to the output.",
      chart: {
        kind: "lines",
        x: "layer",
        y: "divergence",
        series: "lens",
        xAxis: "layer",
        yAxis: "KL to the output, nats",
        steps: true,
        dots: true,
      },
      ...dataOf(points, {
        layer: ["layer", (one) => one.layer],
        lens: ["lens", (one) => one.name],
        divergence: ["KL to the output", (one) => one.mean],
      }),
      details: points.map(({ name, layer, mean }) => `${name}, layer ${layer}\n${figureOf(mean)} nats`),
      table: {
        head: ["layer", ...names],
        rows: layers.map((layer) => [
          String(layer),
          ...names.map((name) => {
            const found = points.find((point) => point.layer === layer && point.name === name);
            return found === undefined ? "" : figureOf(found.mean);
          }),
        ]),
      },
    },
  ];
}

/** A further value for each cell of the lens, in the order of its cells. */
interface Quantity {
  id: string;
  name: string;
  legend: string;
  scale: Shade["scale"];
  values: (number | undefined)[];
  /** The text in a cell; its top token by default. */
  shown?: (value: number) => string;
  /** The line in a cell's details. */
  line: (value: number) => string;
}

function lensQuantities(
  result: InspectResult,
  read: (LensReading["layers"][number] & { norms: number[] })[],
): Quantity[] {
  const followed = visible(result.target_token ?? "");
  const targets = read.flatMap(({ predictions, target }) =>
    predictions.map((_, position) => (target?.length === predictions.length ? target[position] : undefined)),
  );
  const ranks: Quantity[] = [
    {
      id: "target",
      name: `probability of ${followed}`,
      legend: `probability of ${followed} in the lens`,
      scale: "probability",
      values: targets.map((standing) => standing?.probability),
      shown: percent,
      line: (value) => `${followed}  ${percent(value)}`,
    },
    {
      id: "rank",
      name: `rank of ${followed}`,
      legend: `rank of ${followed} among all tokens`,
      scale: "rank",
      values: targets.map((standing) => standing?.rank),
      shown: (value) => `#${value}`,
      line: (value) => `${followed}  rank ${value}`,
    },
  ];
  return [
    ...measured(read),
    ...(targets.some((standing) => standing !== undefined) ? ranks : []),
    {
      id: "norm",
      name: "norm",
      legend: "L2 norm of the block output",
      scale: "magnitude",
      values: read.flatMap(({ norms }) => norms),
      line: (value) => `norm  ${figureOf(value)}`,
    },
  ];
}

/** Entropy and KL to the output, if the result has them; otherwise the lowest entropy that the candidates allow. */
function measured(read: LensReading["layers"]): Quantity[] {
  const some = (values: (number | undefined)[]) => values.some((value) => value !== undefined);
  const each = (pick: (found: LensReading["layers"][number]) => number[] | undefined) =>
    read.flatMap((found) => found.predictions.map((_, position) => pick(found)?.[position]));
  const entropies = each((found) => viewValues(found, "entropy"));
  const divergences = each((found) => viewValues(found, "divergence"));
  const exact: Quantity = {
    id: "entropy",
    name: "entropy",
    legend: "entropy of the reading, in nats",
    scale: "amount",
    values: entropies,
    shown: shortNumber,
    line: (value) => `entropy  ${value.toFixed(2)} nats`,
  };
  const least: Quantity = {
    id: "entropy",
    name: "entropy, at least",
    legend: "lower bound of the entropy in bits, from the recorded candidates",
    scale: "amount",
    values: read.flatMap(({ predictions }) =>
      predictions.map((candidates) => leastEntropy(candidates.map(({ probability }) => probability))),
    ),
    line: (value) => `entropy  ${value.toFixed(2)} bits or more`,
  };
  const distance: Quantity = {
    id: "divergence",
    name: "KL to the output",
    legend: "KL divergence of the reading from the model's output, in nats",
    scale: "amount",
    values: divergences,
    shown: shortNumber,
    line: (value) => `KL to the output  ${value.toFixed(2)} nats`,
  };
  return [some(entropies) ? exact : least, ...(some(divergences) ? [distance] : [])];
}

/** The rank of the tracked token in every cell. */
export function target(result: InspectResult): Figure[] {
  const followed = followedLayers(result);
  if (followed.length === 0) return [];
  const { tokens } = result;
  const named = visible(result.target_token ?? "");
  const cells = followed.flatMap(({ layer, target }) =>
    target.map((standing, position) => ({ layer, position, ...standing, shown: `#${standing.rank}` })),
  );
  return [
    {
      id: "target",
      title: `Rank of ${named}`,
      description:
        `The rank of ${named} among all tokens of the vocabulary at each block and token, coloured by its ` +
        "probability; #1 is the lens's top token.",
      chart: {
        kind: "tokens",
        tokens: tokens.map(visible),
        value: "probability",
        label: "shown",
        legend: `probability of ${named} in the lens`,
        scale: "probability",
      },
      ...dataOf(cells, {
        layer: ["layer", (one) => one.layer],
        position: ["position", (one) => one.position],
        input: ["input token", (one) => visible(tokens[one.position] as string)],
        probability: ["probability", (one) => one.probability],
        rank: ["rank", (one) => one.rank],
        shown: ["rank, as shown", (one) => one.shown],
      }),
      details: cells.map(
        ({ layer, position, probability, rank }) =>
          `layer ${layer}, after ${visible(tokens[position] as string)} (token ${position})\n${named}  rank ${rank}, ${percent(probability)}`,
      ),
      table: {
        head: ["token", ...followed.map(({ layer }) => `layer ${layer}`)],
        rows: tokens.map((token, position) => [
          visible(token),
          ...followed.map(({ target }) => {
            const { rank, probability } = target[position] as Standing;
            return `#${rank} ${percent(probability)}`;
          }),
        ]),
      },
    },
  ];
}

/** The lens's top token after the last token, and the model's answer, layer by layer. */
export function answerByLayer(result: InspectResult): Figure[] {
  const {
    layers,
    next_tokens: [answer],
    target_token_id,
  } = result;
  if (answer === undefined) return [];
  const points = layers
    .toSorted((a, b) => a.layer - b.layer)
    .flatMap((found) => {
      const { layer } = found;
      const top = found.predictions?.at(-1)?.[0];
      const same = answerAt(found, result);
      return [
        ...(top === undefined ? [] : [{ layer, series: "the lens's top token", candidate: top, rank: 1 }]),
        ...(same === undefined
          ? []
          : [{ layer, series: "the model's answer", candidate: { ...answer, ...same }, rank: same.rank }]),
      ];
    });
  if (points.length < 3) return [];
  return [
    {
      id: "answer-by-layer",
      title: "The answer by layer",
      description:
        `After the last token: the probability of the lens's top token, and of the model's own answer ` +
        `${visible(answer.token)}, ${
          target_token_id === answer.token_id
            ? "at any rank"
            : `only where it is in the lens's top three${
                target_token_id === undefined ? "" : ", because this result tracks another token"
              }`
        }.`,
      chart: {
        kind: "lines",
        x: "layer",
        y: "probability",
        series: "series",
        xAxis: "layer",
        yAxis: "probability",
        yDomain: [0, shareEnd(points.map(({ candidate }) => candidate.probability))],
        steps: true,
        emphasis: "the model's answer",
        dots: true,
      },
      ...tabled(points, {
        layer: ["layer", (one) => one.layer, String],
        series: ["line", (one) => one.series, String],
        token: ["token", ({ candidate }) => visible(candidate.token), String],
        probability: ["probability", ({ candidate }) => candidate.probability, percent],
        rank: ["rank", (one) => one.rank, String],
      }),
      details: points.map(
        ({ layer, series, candidate, rank }) =>
          `layer ${layer}, ${series}\n${visible(candidate.token)}  rank ${rank}, ${percent(candidate.probability)}`,
      ),
    },
  ];
}
