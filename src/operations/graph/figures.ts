import type { GraphNode, GraphResult } from "../../contracts/index.js";
import { type Figure, tabled } from "../../findings/figure.js";
import { sentence } from "../../findings/finding.js";
import { featureText, nodeName, partNames, raisedText, strongestNodes } from "../../findings/graph.js";
import { graphFinding, measuredSentence, targetText } from "../../findings/graph-finding.js";
import { markLegend } from "../../findings/graph-layout.js";
import { count, figureOf, percent, signed } from "../../findings/numbers.js";
import type { Findings, Passage } from "../../report/parts.js";
import { visible } from "../../text/visible.js";
import { drawGraph } from "./figures-drawing.js";

/** Bars of nodes and of edges. */
const [nodesShown, edgesShown] = [20, 30];

/** What the logits consist of, the graph, its strongest nodes and edges, and estimates against removals. */
export function graphFindings(result: GraphResult): Findings {
  const { says, controls } = graphFinding(result);
  const { closing, scores } = result;
  return {
    summary: [
      says,
      controls,
      `Completeness ${percent(scores.completeness)}; ${percent(scores.rounding)} of the influence starts at rounding. ` +
        `Every node's edges add up to its value; the worst relative difference is ${closing.worst.toExponential(1)}.`,
    ],
    cautions: [
      ...(result.transcoders === undefined
        ? [
            "Attention weights, norms and gates are frozen: the graph does not show why a head attends where it does, nor what keeps a gate open.",
            "It describes one prompt. Neurons that are not in the graph are summed up as other neurons, without parents.",
          ]
        : [
            "Attention weights and norms are frozen: the graph does not show why a head attends where it does.",
            "It describes one prompt. Errors have no parents: the graph explains nothing that flows through them.",
          ]),
    ],
    parts: [picture(result), parts(result), nodes(result), edges(result), ...measured(result)],
  };
}

function picture(result: GraphResult): Passage {
  return {
    id: "graph",
    title: "Attribution graph",
    description:
      "Tokens from left to right, blocks upwards, and the explained tokens on top. " +
      `${sentence(markLegend(result.nodes))}; larger ones have more influence. Lines raise (teal) or lower (orange) what they lead to. ` +
      "Only the strongest nodes and edges are drawn.",
    get body() {
      return drawGraph(result);
    },
  };
}

function parts(result: GraphResult): Figure {
  const { targets } = result;
  const rows = targets
    .slice(0, 1)
    .flatMap(({ direct, value }) =>
      partNames(result).map(([part, name]) => ({ name, value: direct[part], share: direct[part] / value })),
    );
  const [first] = targets;
  return {
    id: "graph-parts",
    title: "Parts of the logit",
    description:
      first === undefined
        ? ""
        : `The ${targetText(first)} is ${figureOf(first.value)}: the sum of what each kind of node adds to it directly. Through all paths, ` +
          `embeddings make ${signed(first.through.embeddings)} of it, ${result.transcoders === undefined ? "" : `errors ${signed(first.through.errors)}, `}rounding ${signed(first.through.rounding)} and biases ` +
          `${signed(first.through.constant)}.`,
    chart: { kind: "bars", label: "name", value: "value", axis: "logits" },
    ...tabled(rows, {
      name: ["part", ({ name }) => name, String],
      value: ["logits", (one) => one.value, signed],
      share: ["share", (one) => one.share, percent],
    }),
    details: rows.map(({ name, value, share }) => `${name}\n${signed(value)} (${percent(share)})`),
  };
}

function nodes(result: GraphResult): Figure {
  const rows = strongestNodes(result)
    .slice(0, nodesShown)
    .map((node) => ({ ...node, name: nodeName(result, node) }));
  return {
    id: "graph-nodes",
    title: "Strongest nodes",
    description: `The ${result.transcoders === undefined ? "neurons and heads" : "features"} with the most influence on the explained tokens, of ${result.size.kept} in the pruned graph.`,
    chart: { kind: "bars", label: "name", value: "influence", axis: "share of the influence" },
    ...tabled(rows, {
      name: ["node", ({ name }) => name, String],
      influence: ["influence", (one) => one.influence, percent],
      value: ["value", (one) => one.value, (value: number | null) => (value === null ? "" : figureOf(value))],
      ...(result.features && {
        raised: [
          "decoder row alone",
          (one: GraphNode) => raisedText(result.features, one) ?? "",
          String,
        ] as const,
      }),
    }),
    details: rows.map((row) => {
      const more = featureText(result, row);
      return `${row.name}\n${percent(row.influence)} of the influence${more === undefined ? "" : `\n${more}`}`;
    }),
  };
}

function edges(result: GraphResult): Figure {
  const rows = result.edges.slice(0, edgesShown).flatMap(({ source, target, value, influence }) => {
    const [from, to] = [result.nodes[source], result.nodes[target]];
    if (from === undefined || to === undefined) return [];
    return [{ name: `${nodeName(result, from)} → ${nodeName(result, to)}`, value, influence }];
  });
  return {
    id: "graph-edges",
    title: "Strongest edges",
    description: `What one node adds directly to another's value, for the ${count(rows.length, "edge")} with the most influence of ${result.size.edges}.`,
    chart: { kind: "bars", label: "name", value: "influence", axis: "share of the influence" },
    ...tabled(rows, {
      name: ["edge", ({ name }) => name, String],
      influence: ["influence", (one) => one.influence, percent],
      value: ["adds", (one) => one.value, signed],
    }),
    details: rows.map(({ name, value, influence }) => `${name}\n${signed(value)}\n${percent(influence)}`),
  };
}

function measured(result: GraphResult): Figure[] {
  const found = result.measured;
  const [first] = result.targets;
  if (found === null || first === undefined) return [];
  const rows = found.nodes.map((node) => ({ ...node, name: nodeName(result, node) }));
  return [
    {
      id: "graph-measured",
      title: "Removals, estimated and measured",
      description:
        `For each node the part of the ${targetText(first)} that comes through it with everything frozen, and what is lost when it is removed ` +
        `and nothing is frozen; on the line both are equal. ${measuredSentence(result)}`,
      chart: {
        kind: "scatter",
        x: "estimate",
        y: "effect",
        series: "kind",
        label: "name",
        xAxis: "estimate, frozen",
        yAxis: "effect, unfrozen",
        diagonal: true,
      },
      ...tabled(rows, {
        name: ["node", ({ name }) => name, String],
        kind: ["kind", ({ kind }) => kind, String],
        estimate: ["estimate", (one) => one.estimate, signed],
        effect: ["effect", (one) => one.effect, signed],
      }),
      details: rows.map(
        ({ name, estimate, effect }) => `${name}\nestimate ${signed(estimate)}\neffect ${signed(effect)}`,
      ),
      notes: [`Without removals: ${visible(first.token)} ${signed(found.baseline)}.`],
    },
  ];
}
