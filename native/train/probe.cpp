#include "train/probe.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <string>

#include "train/random.h"

namespace tapline::train {

namespace {

constexpr uint64_t kShuffleStream = 1;
constexpr uint64_t kPermutationStreams = 1000;  // one for each permutation, so that threads do not matter

constexpr double kPermutationTolerance = 1e-3;

/// How much of the progress the probe itself is, beside permutations that share its Gram matrix.
constexpr double kProbeShare = 0.2;

// The values of the held-out examples.
template <class T>
std::vector<T> held_out(const Examples& examples, const std::vector<T>& values) {
  std::vector<T> kept;
  for (size_t i = 0; i < values.size(); ++i) {
    if (examples.train[i] == 0) kept.push_back(values[i]);
  }
  return kept;
}

double accuracy_of(const std::vector<double>& decisions, const std::vector<uint8_t>& labels) {
  int right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += (decisions[i] > 0) == (labels[i] != 0);
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

// From the decision values of all examples.
double gradient_infinity_norm(const StandardisedExamples& x, const std::vector<uint8_t>& labels,
                              const std::vector<double>& decisions, const LogisticFit& fit, double c,
                              ThreadTeam& team) {
  std::vector<double> residual(static_cast<size_t>(x.rows()));
  double bias_gradient = 0;
  for (size_t i = 0; i < residual.size(); ++i) {
    const double z = decisions[static_cast<size_t>(x.example(static_cast<int>(i)))];
    residual[i] = labels[i] ? -sigmoid(-z) : sigmoid(z);
    bias_gradient += residual[i];
  }
  std::vector<double> gradient(fit.weight.size());
  x.transposed_times(residual.data(), gradient.data(), &team);
  double norm = std::fabs(bias_gradient);
  for (size_t k = 0; k < gradient.size(); ++k)
    norm = std::max(norm, std::fabs(gradient[k] + fit.weight[k] / c));
  return norm;
}

/// Held-out accuracy and AUROC of fits to permuted training labels. `labels`: of the held-out examples.
void fit_permutations(const Examples& examples, const StandardisedExamples& x,
                      const std::vector<uint8_t>& train_labels, const std::vector<uint8_t>& test_labels,
                      const ProbeOptions& options, const LogisticRegression& regression, ThreadTeam& team,
                      const CancelToken& cancel, const std::function<void(int)>& on_permutation,
                      ProbeResult& result) {
  const auto count = static_cast<size_t>(options.permutations);
  result.permuted_accuracies.assign(count, 0.0);
  result.permuted_aucs.assign(count, 0.0);
  const double tolerance = std::max(options.logistic.tolerance, kPermutationTolerance);
  std::mutex mutex;
  std::exception_ptr failure;
  int done = 0;
  team.parallel_for(options.permutations, [&](int index) {
    try {
      std::vector<uint8_t> labels = train_labels;
      Random random(options.seed, kPermutationStreams + static_cast<uint64_t>(index));
      random.shuffle(labels);
      const LogisticFit fit = regression.fit(labels, nullptr, cancel, {}, tolerance);
      std::vector<double> values = x.products(fit.weight, nullptr);
      for (double& value : values) value += fit.bias;
      const std::vector<double> decisions = held_out(examples, values);
      result.permuted_accuracies[static_cast<size_t>(index)] = accuracy_of(decisions, test_labels);
      result.permuted_aucs[static_cast<size_t>(index)] = area_under_roc(decisions, test_labels);
      const std::lock_guard<std::mutex> lock(mutex);
      on_permutation(++done);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

double area_under_roc(const std::vector<double>& scores, const std::vector<uint8_t>& labels) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  double pairs = 0;
  double zeros_below = 0;
  double ones = 0;
  for (size_t from = 0; from < order.size();) {
    size_t to = from;
    double tied_ones = 0;
    for (; to < order.size() && scores[order[to]] == scores[order[from]]; ++to)
      tied_ones += labels[order[to]] != 0;
    const double tied_zeros = static_cast<double>(to - from) - tied_ones;
    pairs += tied_ones * (zeros_below + tied_zeros / 2);
    zeros_below += tied_zeros;
    ones += tied_ones;
    from = to;
  }
  return ones > 0 && zeros_below > 0 ? pairs / (ones * zeros_below)
                                     : std::numeric_limits<double>::quiet_NaN();
}

ProbeResult train_probe(const Examples& examples, const std::vector<uint8_t>& labels,
                        const ProbeOptions& options, const CancelToken& cancel,
                        const std::function<void(double, double)>& progress) {
  check_finite(examples);
  ThreadTeam team(options.threads > 0 ? options.threads : ThreadTeam::default_size());
  const StandardisedExamples x(examples, options.std_floor, team);
  ProbeResult result;
  result.train_size = x.rows();
  result.test_size = examples.count - x.rows();
  if (result.train_size == 0 || result.test_size == 0) {
    throw Error(ErrorCode::kInvalidArgument, "A probe needs training and held-out examples, but has " +
                                                 std::to_string(result.train_size) + " and " +
                                                 std::to_string(result.test_size) + ".");
  }
  result.mean = x.mean();
  result.std = x.std();
  const std::vector<uint8_t> test_labels = held_out(examples, labels);
  std::vector<uint8_t> train_labels;
  for (int row = 0; row < x.rows(); ++row)
    train_labels.push_back(labels[static_cast<size_t>(x.example(row))]);
  cancel.check();
  const LogisticRegression regression(x, options.logistic, team);

  std::vector<uint8_t> permuted = train_labels;
  Random random(options.seed, kShuffleStream);
  random.shuffle(permuted);

  const double own_share = options.permutations > 0 ? kProbeShare : 1.0;
  LogisticFit fits[2];
  const auto fit_one = [&](int which, ThreadTeam* helpers) {
    fits[which] = regression.fit(which == 0 ? train_labels : permuted, helpers, cancel, [&](int iteration) {
      if (which == 0 && progress) progress(own_share * iteration / (iteration + 3.0), 1.0);
    });
  };
  if (!options.control) {
    fit_one(0, &team);
  } else {
    // The probe and its control are fitted side by side; what either throws is thrown again here.
    std::exception_ptr failures[2];
    team.parallel_for(2, [&](int which) {
      try {
        fit_one(which, nullptr);
      } catch (...) {
        failures[which] = std::current_exception();
      }
    });
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }

  const LogisticFit& fit = fits[0];
  const auto decide = [&](const LogisticFit& which) {
    std::vector<double> values = x.products(which.weight, &team);
    for (double& value : values) value += which.bias;
    return values;
  };
  const std::vector<double> all_decisions = decide(fit);
  const std::vector<double> decisions = held_out(examples, all_decisions);
  result.accuracy = accuracy_of(decisions, test_labels);
  result.auc = area_under_roc(decisions, test_labels);
  for (size_t i = 0; i < test_labels.size(); ++i) {
    const double error = sigmoid(decisions[i]) - (test_labels[i] ? 1.0 : 0.0);
    result.brier += error * error / static_cast<double>(test_labels.size());
  }
  const auto ones =
      std::count_if(train_labels.begin(), train_labels.end(), [](uint8_t label) { return label != 0; });
  const bool majority = 2 * static_cast<size_t>(ones) > train_labels.size();
  result.majority_accuracy =
      accuracy_of(std::vector<double>(test_labels.size(), majority ? 1.0 : -1.0), test_labels);
  result.shuffled_label_accuracy = options.control
                                       ? accuracy_of(held_out(examples, decide(fits[1])), test_labels)
                                       : std::numeric_limits<double>::quiet_NaN();

  result.gradient_norm =
      gradient_infinity_norm(x, train_labels, all_decisions, fit, options.logistic.c, team);
  for (const double value : all_decisions) result.scores.push_back(sigmoid(value));
  fit_permutations(
      examples, x, train_labels, test_labels, options, regression, team, cancel,
      [&](int done) {
        if (progress) progress(own_share + (1 - own_share) * done / options.permutations, 1.0);
      },
      result);
  result.weight = fit.weight;
  result.bias = fit.bias;
  result.converged = fit.converged;
  result.iterations = fit.iterations;
  if (progress) progress(1.0, 1.0);
  return result;
}

}  // namespace tapline::train
