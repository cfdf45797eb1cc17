#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiment/passes.h"
#include "graph/graph_nodes.h"
#include "model/weight_file.h"

namespace tapline {

// What graphs share, whatever their nodes are.

/// A logit, before a soft cap, with the final norm's scale fixed.
struct LogitTarget {
  int position = 0;  // of its token in the text
  llama_token token = -1;
  llama_token minus = -1;  // whose logit is subtracted; negative: the mean of all logits
  double weight = 1;       // of its influence among the targets
};

/// Throws unless the text fits one pass, its linear paths are known (with `mlps`, those of MLPs as well), and
/// there are targets that the model has.
void check_graph(const Passes& passes, const std::vector<llama_token>& tokens,
                 const std::vector<LogitTarget>& targets, bool mlps);

/// `last` is the last block's output, [tokens, hidden].
std::vector<GraphTarget> graph_targets(const Passes& passes, const WeightFile& weights,
                                       const std::vector<LogitTarget>& targets,
                                       const std::vector<float>& last, const CancelToken& cancel);

/// Throws kCompute and names the row (targets, then nodes) whose edges and constant are relatively farther
/// from its value than `bound`.
void check_sums(const std::vector<double>& values, const std::vector<double>& residuals, double bound,
                size_t targets, const std::function<std::string(size_t node)>& name_of_node);

/// "target 0", or a node's name.
std::string name_of_row(size_t row, size_t targets,
                        const std::function<std::string(size_t node)>& name_of_node);

}  // namespace tapline
