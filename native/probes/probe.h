#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/cancel.h"
#include "probes/logistic_regression.h"
#include "probes/standardised.h"

namespace tapline::probes {

struct ProbeOptions {
  LogisticOptions logistic;
  uint64_t seed = 0;
  double std_floor = 0.01;
  bool control = true;   ///< also fit permuted training labels
  int permutations = 0;  ///< further permutations, for the spread of that control
  /// A number for each example: those of one group share a label and a side of the split, labels are permuted
  /// among groups, and a group's score is the mean of its examples'. Empty: every example is a group.
  std::vector<int32_t> groups;
  int threads = 0;  ///< 0: ThreadTeam::default_size()
};

/// How well a probe does, on held-out examples or on held-out groups of them.
struct ProbeFigures {
  double accuracy = 0, auc = 0, brier = 0;
  double majority_accuracy = 0;        ///< of always answering the training set's more frequent label
  double shuffled_label_accuracy = 0;  ///< of a probe fitted to permuted training labels; NaN without control
  std::vector<double> permuted_accuracies, permuted_aucs;  ///< one for each of `permutations`
  int train_size = 0, test_size = 0;
};

/// A linear probe of one layer: sigmoid(((x - mean) / std) . weight + bias).
struct ProbeResult {
  std::vector<double> weight, mean, std, scores;
  double bias = 0;
  ProbeFigures by_example;
  std::optional<ProbeFigures> by_group;  ///< where groups are given
  bool converged = false;
  int iterations = 0;
  double gradient_norm = 0;  ///< infinity norm of the objective's gradient, recomputed for the result
};

/// Standardises with the training examples' statistics (population standard deviation, at least std_floor),
/// fits, and evaluates on the held-out examples. `labels`: 0 or 1 for each example. `progress(fraction, 1)`
/// is an estimate from the number of Newton iterations, then a count of permutations. Permutations are fitted
/// only to a gradient of 1e-3: they show the effect of chance, for which exact weights do not matter.
ProbeResult train_probe(const Examples& examples, const std::vector<uint8_t>& labels,
                        const ProbeOptions& options, const CancelToken& cancel,
                        const std::function<void(double, double)>& progress);

/// Area under the ROC curve: the share of (1, 0) pairs that the scores rank right, ties half (Mann &
/// Whitney).
double area_under_roc(const std::vector<double>& scores, const std::vector<uint8_t>& labels);

}  // namespace tapline::probes
