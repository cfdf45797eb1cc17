#include "probes/probe.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <string>

#include "numbers/random.h"
#include "probes/groups.h"

namespace tapline::probes {

namespace {

constexpr uint64_t kShuffleStream = 1;
constexpr uint64_t kPermutationStreams = 1000;  // one for each permutation, so that threads do not matter

constexpr double kPermutationTolerance = 1e-3;

/// The probe's share of the progress, if there are permutations, which share its Gram matrix.
constexpr double kProbeShare = 0.2;

// The values of the held-out examples.
template <class T>
std::vector<T> held_out(const Examples& examples, const std::vector<T>& values) {
  std::vector<T> out;
  for (size_t i = 0; i < values.size(); ++i) {
    if (examples.train[i] == 0) out.push_back(values[i]);
  }
  return out;
}

double accuracy_of(const std::vector<double>& values, double threshold, const std::vector<uint8_t>& labels) {
  int right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += (values[i] > threshold) == (labels[i] != 0);
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

/// Calls found(index, decision values of held-out examples) for fits to permuted training labels, each index
/// once, from several threads.
void fit_permutations(const Examples& examples, const StandardisedExamples& x, const Groups& groups,
                      const ProbeOptions& options, const LogisticRegression& regression, ThreadTeam& team,
                      const CancelToken& cancel,
                      const std::function<void(size_t, const std::vector<double>&)>& found,
                      const std::function<void(int)>& on_permutation) {
  const double tolerance = std::max(options.logistic.tolerance, kPermutationTolerance);
  std::mutex mutex;
  int done = 0;
  team.parallel_for(options.permutations, [&](int index) {
    Random random(options.seed, kPermutationStreams + static_cast<uint64_t>(index));
    const std::vector<uint8_t> labels = groups.permuted(random);
    const LogisticFit fit = regression.fit(labels, nullptr, cancel, {}, tolerance);
    std::vector<double> values = x.products(fit.weight, nullptr);
    for (double& value : values) value += fit.bias;
    found(static_cast<size_t>(index), held_out(examples, values));
    const std::lock_guard<std::mutex> lock(mutex);
    on_permutation(++done);
  });
}

/// The unit of evaluation: examples by their decision values, or groups by the means of their scores.
struct Unit {
  ProbeFigures& figures;
  const std::vector<uint8_t>& train_labels;
  const std::vector<uint8_t>& test_labels;
  const Groups* groups;  // null: of examples

  /// The values to compare with threshold().
  std::vector<double> values(const std::vector<double>& decisions) const {
    return groups == nullptr ? decisions : groups->mean_scores(decisions);
  }

  double threshold() const { return groups == nullptr ? 0 : 0.5; }

  double accuracy(const std::vector<double>& decisions) const {
    return accuracy_of(values(decisions), threshold(), test_labels);
  }

  /// Computes all figures except those of permutations.
  void measure(const std::vector<double>& decisions) const {
    figures.train_size = static_cast<int>(train_labels.size());
    figures.test_size = static_cast<int>(test_labels.size());
    const auto ones =
        std::count_if(train_labels.begin(), train_labels.end(), [](uint8_t label) { return label != 0; });
    const bool majority = 2 * static_cast<size_t>(ones) > train_labels.size();
    figures.majority_accuracy =
        accuracy_of(std::vector<double>(test_labels.size(), majority ? 1.0 : -1.0), 0, test_labels);
    const std::vector<double> found = values(decisions);
    figures.accuracy = accuracy_of(found, threshold(), test_labels);
    figures.auc = area_under_roc(found, test_labels);
    for (size_t i = 0; i < test_labels.size(); ++i) {
      const double score = groups == nullptr ? sigmoid(found[i]) : found[i];
      const double error = score - (test_labels[i] ? 1.0 : 0.0);
      figures.brier += error * error / static_cast<double>(test_labels.size());
    }
  }
};

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
  const Groups groups(options.groups, examples.train, labels);
  if (x.rows() == 0 || x.rows() == examples.count)
    throw_error(ErrorCode::kInvalidArgument, "A probe needs training and held-out examples, got ", x.rows(),
                " and ", examples.count - x.rows(), ".");
  ProbeResult result;
  result.mean = x.mean();
  result.std = x.std();
  const std::vector<uint8_t> test_labels = held_out(examples, labels);
  std::vector<uint8_t> train_labels;
  for (int row = 0; row < x.rows(); ++row)
    train_labels.push_back(labels[static_cast<size_t>(x.example(row))]);
  std::vector<Unit> units{{result.by_example, train_labels, test_labels, nullptr}};
  if (groups.given())
    units.push_back({result.by_group.emplace(), groups.train_labels(), groups.test_labels(), &groups});
  cancel.check();
  const LogisticRegression regression(x, options.logistic, team);

  Random random(options.seed, kShuffleStream);
  const std::vector<uint8_t> permuted = groups.permuted(random);

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
    // The probe and its control are fitted in parallel.
    team.parallel_for(2, [&](int which) { fit_one(which, nullptr); });
  }

  const LogisticFit& fit = fits[0];
  const auto decide = [&](const LogisticFit& which) {
    std::vector<double> values = x.products(which.weight, &team);
    for (double& value : values) value += which.bias;
    return values;
  };
  const std::vector<double> all_decisions = decide(fit);
  const std::vector<double> control = options.control ? decide(fits[1]) : std::vector<double>{};
  for (const Unit& unit : units) {
    unit.measure(held_out(examples, all_decisions));
    unit.figures.shuffled_label_accuracy = options.control ? unit.accuracy(held_out(examples, control))
                                                           : std::numeric_limits<double>::quiet_NaN();
    unit.figures.permuted_accuracies.assign(static_cast<size_t>(options.permutations), 0.0);
    unit.figures.permuted_aucs.assign(static_cast<size_t>(options.permutations), 0.0);
  }

  result.gradient_norm =
      gradient_infinity_norm(x, train_labels, all_decisions, fit, options.logistic.c, team);
  for (const double value : all_decisions) result.scores.push_back(sigmoid(value));
  fit_permutations(
      examples, x, groups, options, regression, team, cancel,
      [&](size_t index, const std::vector<double>& decisions) {
        for (const Unit& unit : units) {
          unit.figures.permuted_accuracies[index] = unit.accuracy(decisions);
          unit.figures.permuted_aucs[index] = area_under_roc(unit.values(decisions), unit.test_labels);
        }
      },
      [&](int done) {
        if (progress) progress(own_share + (1 - own_share) * done / options.permutations, 1.0);
      });
  result.weight = fit.weight;
  result.bias = fit.bias;
  result.converged = fit.converged;
  result.iterations = fit.iterations;
  if (progress) progress(1.0, 1.0);
  return result;
}

}  // namespace tapline::probes
