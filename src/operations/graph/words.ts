import { tokenOrDifference } from "../../findings/graph.js";
import { firstOf, type Words } from "../words.js";

export default {
  heading: ({ tokens }, { prompt }) => ["Attribution graph of", prompt ?? tokens.join("")],
  subject: ({ prompt }) => firstOf([prompt]),
  texts: ({ prompt }) => [prompt],
  method({
    position,
    target_token,
    foil_token,
    transcoders,
    nodes,
    node_threshold,
    edge_threshold,
    measured,
    seed,
  }) {
    const target =
      target_token === undefined ? "the most probable tokens" : tokenOrDifference(target_token, foil_token);
    return (
      `graph: attribution graph (${transcoders === undefined ? "RelP" : `transcoders ${transcoders}`}) of the logits of ${target} at token ` +
      `${position}, up to ${nodes} ${transcoders === undefined ? "neurons and heads" : "features"}, pruned ` +
      `to ${node_threshold} of the influence of nodes and ${edge_threshold} of that of edges` +
      `${measured > 0 ? `; the ${measured} strongest removed one at a time (bootstrap seed ${seed})` : ""}.`
    );
  },
  tables: ["graph-parts", "graph-nodes", "graph-edges", "graph-measured"],
  *shorter(whole) {
    for (let most = 1000; most >= 10; most = Math.floor(most / 2)) {
      if (whole.edges.length <= most) continue;
      const edges = whole.edges.slice(0, most);
      const ends = new Set(edges.flatMap(({ source, target }) => [source, target]));
      const kept = [...whole.nodes.keys()].filter((at) => ends.has(at) || whole.nodes[at]?.kind === "target");
      const places = new Map(kept.map((old, at) => [old, at]));
      yield [
        `all but the ${most} most influential edges and their nodes`,
        {
          ...whole,
          nodes: kept.map((at) => whole.nodes[at]),
          edges: edges.map((edge) => ({
            ...edge,
            source: places.get(edge.source),
            target: places.get(edge.target),
          })),
        },
      ];
    }
  },
} satisfies Words<"graph">;
