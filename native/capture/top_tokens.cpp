#include "capture/top_tokens.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "capture/softmax.h"

namespace tapline {

namespace {

/// Whether token a precedes token b: by probability, in ties by id.
bool before(const float* logits, int32_t a, int32_t b) {
  return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

/// The number of logits that are skipped together if none of them is among the best.
constexpr int kTogether = 256;

void top_of_row(const float* logits, int n_vocab, int k, int32_t* ids) {
  // Insertion into a short sorted list: k is at most a few dozen.
  int held = 0;
  for (int first = 0; first < n_vocab; first += kTogether) {
    const int end = std::min(n_vocab, first + kTogether);
    if (held == k && !(highest_of(logits + first, end - first) > logits[ids[k - 1]])) continue;
    for (int i = first; i < end; ++i) {
      if (held == k && !(logits[i] > logits[ids[k - 1]])) continue;
      int at = held < k ? held++ : k - 1;
      for (; at > 0 && logits[i] > logits[ids[at - 1]]; --at) ids[at] = ids[at - 1];
      ids[at] = i;
    }
  }
}

int32_t rank_of(const float* logits, int n_vocab, int32_t token) {
  int32_t rank = 1;
  for (int32_t i = 0; i < n_vocab; ++i) rank += before(logits, i, token) ? 1 : 0;
  return rank;
}

}  // namespace

RowThreads::RowThreads(int n_threads) : n_threads_(std::max(1, n_threads)) {}

void RowThreads::each_row(size_t rows, int n_vocab, const std::function<void(size_t)>& work) {
  const size_t n_workers = std::min<size_t>(rows, static_cast<size_t>(n_threads_));
  if (n_workers < 2 || rows * static_cast<size_t>(n_vocab) < (1U << 18U)) {
    for (size_t row = 0; row < rows; ++row) work(row);
    return;
  }
  if (!team_) team_ = std::make_unique<ThreadTeam>(n_threads_);
  team_->parallel_for(static_cast<int>(n_workers), [&](int worker) {
    for (auto row = static_cast<size_t>(worker); row < rows; row += n_workers) work(row);
  });
}

TopTokens top_tokens(const float* logits, size_t rows, int n_vocab, int k, const int32_t* targets,
                     RowThreads& threads) {
  TopTokens top;
  top.k = std::min(k, n_vocab);
  const auto width = static_cast<size_t>(top.k);
  top.ids.resize(rows * width);
  top.probabilities.resize(rows * width);
  if (targets != nullptr) {
    top.target_probabilities.resize(rows);
    top.target_ranks.resize(rows);
  }
  threads.each_row(rows, n_vocab, [&](size_t row) {
    const float* of_row = logits + row * static_cast<size_t>(n_vocab);
    const Softmax softmax(of_row, n_vocab);
    top_of_row(of_row, n_vocab, top.k, top.ids.data() + row * width);
    for (size_t j = row * width; j < (row + 1) * width; ++j)
      top.probabilities[j] = softmax.probability(of_row[top.ids[j]]);
    if (targets == nullptr || targets[row] < 0) return;
    top.target_probabilities[row] = softmax.probability(of_row[targets[row]]);
    top.target_ranks[row] = rank_of(of_row, n_vocab, targets[row]);
  });
  if (!std::all_of(top.probabilities.begin(), top.probabilities.end(),
                   [](float probability) { return std::isfinite(probability); })) {
    throw Error(ErrorCode::kCompute,
                "The model's probabilities are not finite; the model file may be damaged.");
  }
  return top;
}

TokenScores score_tokens(const std::vector<const float*>& rows, int n_vocab,
                         const std::vector<int32_t>& tokens, int k, RowThreads& threads) {
  TokenScores scores;
  scores.k = std::min(k, n_vocab);
  const auto width = static_cast<size_t>(scores.k);
  scores.log_probabilities.resize(rows.size());
  scores.top_ids.resize(rows.size() * width);
  scores.top_log_probabilities.resize(rows.size() * width);
  threads.each_row(rows.size(), n_vocab, [&](size_t row) {
    const float* logits = rows[row];
    if (logits == nullptr) return;
    const Softmax softmax(logits, n_vocab);
    scores.log_probabilities[row] = softmax.log_probability(logits[tokens[row]]);
    int32_t* ids = scores.top_ids.data() + row * width;
    if (width > 0) top_of_row(logits, n_vocab, scores.k, ids);
    for (size_t j = 0; j < width; ++j)
      scores.top_log_probabilities[row * width + j] = softmax.log_probability(logits[ids[j]]);
  });
  return scores;
}

}  // namespace tapline
