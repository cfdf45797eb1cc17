#pragma once

#include <vector>

#include "experiment/graph_targets.h"
#include "experiment/passes.h"
#include "graph/transcoder_edges.h"

namespace tapline {

struct LayerTranscoder {
  int layer = 0;
  Point point = Point::kFfnIn;
  TranscoderUse use;
};

struct TranscoderGraphRequest {
  std::vector<llama_token> tokens;
  std::vector<LogitTarget> targets;
  std::vector<LayerTranscoder> transcoders;  // ascending by layer; other layers have none
  int zeros = 0;                             // first tokens at which MLP outputs are constant
  size_t nodes = 0;                          // features, at most
  size_t tried = 0;                          // of these, the strongest for the first target, removed
  bool precise = false;                      // in double precision
  bool estimate = false;                     // only `bytes`
};

struct TranscoderGraph {
  size_t bytes = 0;  // approximate peak memory in addition to the model's
  TranscoderEdges edges;
  // By node.
  std::vector<int32_t> layers;
  std::vector<int32_t> tokens;
  std::vector<int32_t> features;
  std::vector<double> activations;
  std::vector<double> relevances;  // [nodes, targets]: what comes through it on all paths between nodes
  /// [targets, columns without nodes]: the same of what starts the paths.
  std::vector<double> starts;
  std::vector<size_t> tried;  // nodes, the strongest first
  /// Of these: how ffn_out at their tokens changes without them, [blocks that they write into, hidden].
  std::vector<std::vector<float>> losses;
  std::vector<double> frozen;        // [tried, targets + nodes]: see frozen_removals()
  std::vector<double> ffn_in_apart;  // by layer
  double apart_bound = 0;
  double residual_bound = 0;
};

/// Computes a text in one pass and finds, with attention weights and norms fixed and MLP outputs replaced by
/// active features of transcoders, constants and errors, the edges between embeddings, features, errors and
/// targets. Clears the context. Throws kUnsupportedArchitecture if a path is unknown, kCompute, with the
/// place, if a block is farther from its linear path or a sum from its value than the bounds, or if a
/// feature's removal does not equal its edges. `progress` counts rows of the graph.
TranscoderGraph transcoder_graph(Passes& passes, const TranscoderGraphRequest& request,
                                 const CancelToken& cancel, const CountProgress& progress);

}  // namespace tapline
