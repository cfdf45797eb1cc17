import type { InspectResult } from "../../contracts/index.js";
import { expertsStory, firstShare } from "../../findings/blocks.js";
import type { Figure } from "../../findings/figure.js";
import { dataOf } from "../../findings/figure.js";
import { figureOf, percent } from "../../findings/numbers.js";
import { visible } from "../../text/visible.js";

/** Which experts each token was routed to, and how evenly they were used. */
export function routing({ routing: layers = [], tokens }: InspectResult): Figure[] {
  if (layers.length === 0) return [];
  const cells = layers.flatMap((found) =>
    found.chosen.map((chosen, position) => ({
      ...{ layer: found.layer, position, chosen, weights: found.weights[position] as number[] },
      share: firstShare(found, position),
    })),
  );
  const uses = layers.flatMap(({ layer, shares }) =>
    shares.map((share, expert) => ({ layer, expert, share })),
  );
  const most = Math.max(...layers.map(({ experts }) => experts));
  return [
    {
      id: "routing-tokens",
      title: "Experts of each token",
      description:
        "The top expert for every block and token, coloured by its share of the token's routing " +
        "weights. The table lists all experts of a token. Expert numbers are not comparable between blocks.",
      chart: {
        kind: "tokens",
        tokens: tokens.map(visible),
        value: "share",
        label: "expert",
        legend: "the top expert's share of the weights",
        scale: "probability",
      },
      ...dataOf(cells, {
        layer: ["layer", (one) => one.layer],
        position: ["position", (one) => one.position],
        input: ["input token", (one) => visible(tokens[one.position] as string)],
        expert: ["top expert", ({ chosen }) => String(chosen[0])],
        share: ["its share of the weights", (one) => one.share],
        experts: ["all experts", ({ chosen }) => chosen.join(" ")],
      }),
      details: cells.map(
        ({ layer, position, chosen, weights }) =>
          `layer ${layer}, ${visible(tokens[position] as string)} (token ${position})\n` +
          chosen.map((expert, i) => `expert ${expert}: weight ${figureOf(weights[i] as number)}`).join("\n"),
      ),
      table: {
        head: ["token", ...layers.map(({ layer }) => `layer ${layer}`)],
        rows: tokens.map((token, position) => [
          visible(token),
          ...layers.map(({ chosen }) => (chosen[position] as number[]).join(", ")),
        ]),
      },
    },
    {
      id: "routing-experts",
      title: "How often each expert was chosen",
      description:
        `Each expert's share of all choices in this text. ${layers.map((found) => `Layer ${found.layer}: ${expertsStory(found)}.`).join(" ")} ` +
        "One text says little about how a model uses its experts.",
      chart: {
        kind: "tokens",
        tokens: Array.from({ length: most }, (_, expert) => `expert ${expert}`),
        value: "share",
        label: "shown",
        legend: "share of the choices",
        scale: "amount",
      },
      ...dataOf(uses, {
        layer: ["layer", (one) => one.layer],
        position: ["expert", ({ expert }) => expert],
        share: ["share", (one) => one.share],
        shown: ["share, as shown", ({ share }) => percent(share)],
      }),
      details: uses.map(
        ({ layer, expert, share }) => `layer ${layer}, expert ${expert}\n${percent(share)} of all choices`,
      ),
      table: {
        head: ["expert", ...layers.map(({ layer }) => `layer ${layer}`)],
        rows: Array.from({ length: most }, (_, expert) => [
          String(expert),
          ...layers.map(({ shares }) => (shares[expert] === undefined ? "" : percent(shares[expert]))),
        ]),
      },
    },
  ];
}
