#include "experiment/graph_targets.h"

#include <utility>

#include "experiment/frozen_pass.h"

namespace tapline {

void check_graph(const Passes& passes, const std::vector<llama_token>& tokens,
                 const std::vector<LogitTarget>& targets, bool mlps) {
  check_linear_paths(passes, mlps);
  check_one_pass(passes, tokens, "A graph");
  if (targets.empty()) throw Error(ErrorCode::kInvalidArgument, "At least one target is needed.");
  for (const LogitTarget& target : targets) {
    check_position(target.position, tokens.size());
    check_logit(passes, target.token, target.minus);
  }
}

std::vector<GraphTarget> graph_targets(const Passes& passes, const WeightFile& weights,
                                       const std::vector<LogitTarget>& targets,
                                       const std::vector<float>& last, const CancelToken& cancel) {
  LogitFunctions logits(passes, weights, cancel);
  std::vector<GraphTarget> found;
  for (const LogitTarget& target : targets) {
    LogitDirection one = logits.of(target.token, target.minus, last, target.position);
    found.push_back({target.position, std::move(one.direction), one.constant, target.weight});
  }
  return found;
}

void check_sums(const std::vector<double>& values, const std::vector<double>& residuals, double bound,
                size_t targets, const std::function<std::string(size_t node)>& name_of_node) {
  for (size_t row = 0; row < residuals.size(); ++row) {
    if (residuals[row] <= bound) continue;
    throw_error(ErrorCode::kCompute, "The edges of ", name_of_row(row, targets, name_of_node),
                " do not add up to its value of ", two_digits(values[row]), ": the relative difference is ",
                two_digits(residuals[row]), ", at most ", two_digits(bound), ".");
  }
}

std::string name_of_row(size_t row, size_t targets,
                        const std::function<std::string(size_t node)>& name_of_node) {
  return row < targets ? "target " + std::to_string(row) : name_of_node(row - targets);
}

}  // namespace tapline
