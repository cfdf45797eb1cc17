#include "train/probe.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "train/random.h"

namespace tapline::train {

namespace {

constexpr uint64_t kShuffleStream = 1;

std::vector<int> rows_where(const Examples& examples, bool train) {
  std::vector<int> rows;
  for (int i = 0; i < examples.count; ++i) {
    if ((examples.train[static_cast<size_t>(i)] != 0) == train) rows.push_back(i);
  }
  return rows;
}

const float* row_of(const Examples& examples, int row) {
  return examples.features + static_cast<size_t>(row) * static_cast<size_t>(examples.hidden);
}

// Mean and population standard deviation of the given rows, by differences from the first row: a constant
// feature has a deviation of exactly 0 whatever its size.
void column_statistics(const Examples& examples, const std::vector<int>& rows, std::vector<double>& mean,
                       std::vector<double>& deviation) {
  const size_t hidden = static_cast<size_t>(examples.hidden);
  const double n = static_cast<double>(rows.size());
  const float* first = row_of(examples, rows[0]);
  mean.assign(hidden, 0.0);
  deviation.assign(hidden, 0.0);
  for (const int row : rows) {
    const float* x = row_of(examples, row);
    for (size_t k = 0; k < hidden; ++k) mean[k] += static_cast<double>(x[k]) - static_cast<double>(first[k]);
  }
  for (size_t k = 0; k < hidden; ++k) mean[k] = static_cast<double>(first[k]) + mean[k] / n;
  for (const int row : rows) {
    const float* x = row_of(examples, row);
    for (size_t k = 0; k < hidden; ++k) {
      const double difference = static_cast<double>(x[k]) - mean[k];
      deviation[k] += difference * difference;
    }
  }
  for (double& value : deviation) value = std::sqrt(value / n);
}

PanelMatrix standardised(const Examples& examples, const std::vector<int>& rows,
                         const std::vector<double>& mean, const std::vector<double>& inverse_std,
                         ThreadTeam& team) {
  constexpr int kWidth = PanelMatrix::kWidth;
  PanelMatrix x(static_cast<int>(rows.size()), examples.hidden);
  team.parallel_for(x.panels(), [&](int p) {
    double* panel = x.panel(p);
    for (int lane = 0; lane < kWidth && p * kWidth + lane < x.rows(); ++lane) {
      const float* from = row_of(examples, rows[static_cast<size_t>(p * kWidth + lane)]);
      for (int k = 0; k < examples.hidden; ++k) {
        const size_t at = static_cast<size_t>(k);
        panel[at * kWidth + static_cast<size_t>(lane)] =
            (static_cast<double>(from[k]) - mean[at]) * inverse_std[at];
      }
    }
  });
  return x;
}

// w . ((x - mean) / std) + bias for the given rows.
std::vector<double> decision_values(const Examples& examples, const std::vector<int>& rows,
                                    const std::vector<double>& mean, const std::vector<double>& inverse_std,
                                    const LogisticFit& fit) {
  const size_t hidden = static_cast<size_t>(examples.hidden);
  std::vector<double> scaled(hidden);
  for (size_t k = 0; k < hidden; ++k) scaled[k] = fit.weight[k] * inverse_std[k];
  std::vector<double> values;
  values.reserve(rows.size());
  for (const int row : rows) {
    const float* x = row_of(examples, row);
    double part[4] = {};
    size_t k = 0;
    for (; k + 4 <= hidden; k += 4) {
      for (size_t j = 0; j < 4; ++j) part[j] += (static_cast<double>(x[k + j]) - mean[k + j]) * scaled[k + j];
    }
    for (; k < hidden; ++k) part[0] += (static_cast<double>(x[k]) - mean[k]) * scaled[k];
    values.push_back((part[0] + part[1]) + (part[2] + part[3]) + fit.bias);
  }
  return values;
}

double accuracy_of(const std::vector<double>& decisions, const std::vector<uint8_t>& labels) {
  int right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += (decisions[i] > 0) == (labels[i] != 0);
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

double gradient_infinity_norm(const PanelMatrix& x, const std::vector<uint8_t>& labels,
                              const LogisticFit& fit, double c) {
  std::vector<double> scores(static_cast<size_t>(x.panels()) * PanelMatrix::kWidth);
  times(x, fit.weight.data(), scores.data());
  double bias_gradient = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    const double z = scores[i] + fit.bias;
    scores[i] = i >= labels.size() ? 0.0 : labels[i] ? -sigmoid(-z) : sigmoid(z);
    bias_gradient += scores[i];
  }
  std::vector<double> gradient(fit.weight.size());
  transposed_times(x, scores.data(), gradient.data());
  double norm = std::fabs(bias_gradient);
  for (size_t k = 0; k < gradient.size(); ++k)
    norm = std::max(norm, std::fabs(gradient[k] + fit.weight[k] / c));
  return norm;
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

void check_finite(const Examples& examples) {
  const size_t total = static_cast<size_t>(examples.count) * static_cast<size_t>(examples.hidden);
  for (size_t i = 0; i < total; ++i) {
    if (std::isfinite(examples.features[i])) continue;
    const size_t hidden = static_cast<size_t>(examples.hidden);
    throw Error(ErrorCode::kInvalidArgument, "Activation " + std::to_string(i % hidden) + " of example " +
                                                 std::to_string(i / hidden) + " is not a finite number.");
  }
}

ProbeResult train_probe(const Examples& examples, const std::vector<uint8_t>& labels,
                        const ProbeOptions& options, const CancelToken& cancel,
                        const std::function<void(double, double)>& progress) {
  check_finite(examples);
  const std::vector<int> train = rows_where(examples, true);
  const std::vector<int> test = rows_where(examples, false);
  if (train.empty() || test.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "A probe needs training and held-out examples, but has " +
                                                 std::to_string(train.size()) + " and " +
                                                 std::to_string(test.size()) + ".");
  }
  std::vector<uint8_t> train_labels;
  std::vector<uint8_t> test_labels;
  for (const int row : train) train_labels.push_back(labels[static_cast<size_t>(row)]);
  for (const int row : test) test_labels.push_back(labels[static_cast<size_t>(row)]);

  ThreadTeam team(options.threads > 0 ? options.threads : ThreadTeam::default_size());
  ProbeResult result;
  result.train_size = static_cast<int>(train.size());
  result.test_size = static_cast<int>(test.size());
  column_statistics(examples, train, result.mean, result.std);
  std::vector<double> inverse_std(result.std.size());
  for (size_t k = 0; k < result.std.size(); ++k) {
    result.std[k] = std::max(result.std[k], options.std_floor);
    inverse_std[k] = 1.0 / result.std[k];
  }
  cancel.check();
  const PanelMatrix x = standardised(examples, train, result.mean, inverse_std, team);
  cancel.check();
  const LogisticRegression regression(x, options.logistic, team);

  std::vector<uint8_t> permuted = train_labels;
  Random random(options.seed, kShuffleStream);
  random.shuffle(permuted);

  // The probe and its control are fitted side by side; what either throws is thrown again here.
  LogisticFit fits[2];
  std::exception_ptr failures[2];
  const int fit_count = options.control ? 2 : 1;
  team.parallel_for(fit_count, [&](int which) {
    try {
      fits[which] = regression.fit(which == 0 ? train_labels : permuted, cancel, [&](int iteration) {
        if (which == 0 && progress) progress(iteration / (iteration + 3.0), 1.0);
      });
    } catch (...) {
      failures[which] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }

  const LogisticFit& fit = fits[0];
  const std::vector<double> decisions = decision_values(examples, test, result.mean, inverse_std, fit);
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
  result.shuffled_label_accuracy =
      options.control
          ? accuracy_of(decision_values(examples, test, result.mean, inverse_std, fits[1]), test_labels)
          : std::numeric_limits<double>::quiet_NaN();

  std::vector<int> everything(static_cast<size_t>(examples.count));
  std::iota(everything.begin(), everything.end(), 0);
  result.scores = decision_values(examples, everything, result.mean, inverse_std, fit);
  for (double& score : result.scores) score = sigmoid(score);
  result.gradient_norm = gradient_infinity_norm(x, train_labels, fit, options.logistic.c);
  result.weight = fit.weight;
  result.bias = fit.bias;
  result.converged = fit.converged;
  result.iterations = fit.iterations;
  if (progress) progress(1.0, 1.0);
  return result;
}

}  // namespace tapline::train
