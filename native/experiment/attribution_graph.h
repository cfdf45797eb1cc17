#pragma once

#include <vector>

#include "experiment/graph_targets.h"
#include "experiment/passes.h"
#include "graph/direct_edges.h"
#include "graph/graph_nodes.h"

namespace tapline {

struct AttributionGraphRequest {
  std::vector<llama_token> tokens;
  std::vector<LogitTarget> targets;
  size_t nodes = 0;       // neurons and heads, at most
  size_t tried = 0;       // of these, whose removal is to be measured
  int first = 0;          // the first token at which there are nodes
  bool precise = false;   // in double precision
  bool estimate = false;  // only `bytes`
};

struct AttributionGraph {
  size_t bytes = 0;  // approximate peak memory in addition to the model's
  std::vector<GraphNode> nodes;
  std::vector<std::vector<double>> embeddings;  // see GraphNodes
  std::vector<double> rounding;
  std::vector<double> apart;
  std::vector<double> ffn_apart;
  std::vector<size_t> tried;
  std::vector<std::vector<float>> losses;
  DirectEdges edges;
  double apart_bound = 0;
  double residual_bound = 0;
};

/// Computes a text in one pass and finds, with attention weights, norms and gates fixed, the neurons and
/// heads through which most of the targets' values comes, and the edges between them: each node's value is
/// the sum of its edges and its constant. Clears the context. Throws kUnsupportedArchitecture if a path is
/// unknown, kCompute, with the place, if a block is farther from its linear path or a sum from its value than
/// the bounds. `progress` counts blocks, each once to find nodes, to read them, and for their edges.
AttributionGraph attribution_graph(Passes& passes, const AttributionGraphRequest& request,
                                   const CancelToken& cancel, const CountProgress& progress);

}  // namespace tapline
