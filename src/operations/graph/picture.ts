import type { GraphResult } from "../../contracts/index.js";
import {
  nodeName,
  partNames,
  raisedText,
  shortName,
  strongestNodes,
  tokenOrDifference,
} from "../../findings/graph.js";
import { graphFinding, targetText } from "../../findings/graph-finding.js";
import { count, percent, signed } from "../../findings/numbers.js";
import { oneLine } from "../../findings/text.js";
import type { Canvas } from "../../terminal/canvas.js";
import { finding, heading, labelled } from "../../terminal/page.js";
import { table } from "../../terminal/table.js";
import { visible } from "../../text/visible.js";
import type { Picture } from "../picture.js";

/** Lines of nodes and of edges. */
const [nodesShown, edgesShown] = [12, 12];

/** The parts of the target, the most influential nodes with their removals, and the strongest edges. */
export function graphPicture(
  result: Omit<GraphResult, "note" | "artifacts" | "provenance">,
  canvas: Canvas,
): string[] {
  const [first, ...others] = result.targets;
  if (first === undefined) return [];
  const parts = partNames(result).map(([part, name]) => `${name} ${signed(first.direct[part])}`);
  return [
    ...labelled(
      "Target",
      `${targetText(first)} ${signed(first.value)}, probability ${percent(first.probability)}`,
      canvas,
    ),
    ...(others.length === 0
      ? []
      : labelled(
          "Also",
          others.map(({ token, probability }) => `${visible(token)} ${percent(probability)}`).join(", "),
          canvas,
        )),
    ...labelled("Directly", parts.join(", "), canvas),
    "",
    heading(
      "Nodes",
      `the most influential ${result.transcoders === undefined ? "neurons and heads" : "features"}`,
      "",
      canvas,
    ),
    ...nodeTable(result, canvas),
    "",
    heading("Edges", "what one node adds to another", "", canvas),
    ...edgeTable(result, canvas),
    ...(result.size.edges > edgesShown
      ? [`${count(result.size.edges, "edge")} in total, between ${count(result.nodes.length, "node")}.`]
      : []),
    "",
    ...finding(graphFinding(result), canvas),
  ];
}

function nodeTable(result: Parameters<typeof graphPicture>[0], canvas: Canvas): string[] {
  const measured = new Map(result.measured?.nodes.map((node) => [keyOf(node), node]));
  const rows = strongestNodes(result)
    .slice(0, nodesShown)
    .map((node) => {
      const found = measured.get(keyOf(node));
      return [
        nodeName(result, node),
        percent(node.influence),
        found === undefined ? "" : signed(found.estimate),
        found === undefined ? "" : signed(found.effect),
        ...(result.features === undefined ? [] : [raisedText(result.features, node) ?? ""]),
      ];
    });
  return table(
    [
      { title: "node", least: 20 },
      { title: "influence", align: "right" },
      { title: "estimate", align: "right", dispensable: 1 },
      { title: "effect", align: "right", dispensable: 1 },
      ...(result.features === undefined
        ? []
        : [{ title: "decoder row alone", least: 16, dispensable: 2 } as const]),
    ],
    rows,
    canvas,
  );
}

function keyOf(node: Parameters<typeof shortName>[0]): string {
  return `${shortName(node)} at ${node.position}`;
}

function edgeTable(result: Parameters<typeof graphPicture>[0], canvas: Canvas): string[] {
  const rows = result.edges.slice(0, edgesShown).map(({ source, target, value, influence }) => {
    const [from, to] = [result.nodes[source], result.nodes[target]];
    if (from === undefined || to === undefined) return ["", "", "", ""];
    return [nodeName(result, from), shortName(to), signed(value), percent(influence)];
  });
  return table(
    [
      { title: "from", least: 20 },
      { title: "to", least: 8 },
      { title: "adds", align: "right" },
      { title: "influence", align: "right", dispensable: 1 },
    ],
    rows,
    canvas,
  );
}

export default {
  asked: ({ prompt, target_token, foil_token, transcoders }) => [
    ["Graph of", oneLine(prompt)],
    ...(target_token === undefined
      ? []
      : ([["Token", tokenOrDifference(target_token, foil_token)]] as [string, string][])),
    ...(transcoders === undefined ? [] : ([["Transcoders", transcoders]] as [string, string][])),
  ],
  draw: graphPicture,
} satisfies Picture<"graph">;
