#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/thread_team.h"

namespace tapline {

template <class T>
void append(std::vector<T>& all, const std::vector<T>& part) {
  all.insert(all.end(), part.begin(), part.end());
}

/// The k most probable tokens of each row, most probable first, ties by token id; and the rank of its target,
/// if there are targets.
struct TopTokens {
  int k = 0;
  std::vector<int32_t> ids;                 // [rows, k]
  std::vector<float> probabilities;         // [rows, k], softmax over the whole vocabulary
  std::vector<float> target_probabilities;  // [rows]
  std::vector<int32_t> target_ranks;        // [rows]; 1: the most probable, ties by token id; 0: no target
};

/// Threads for rows of logits, started when they first pay off. One caller at a time.
class RowThreads {
 public:
  explicit RowThreads(int n_threads);

  /// Calls work(row) for each row of logits, on several threads unless there is too little work.
  void each_row(size_t rows, int n_vocab, const std::function<void(size_t)>& work);

 private:
  int n_threads_;
  std::unique_ptr<ThreadTeam> team_;
};

/// Computes the top k of rows of logits. Throws kCompute if a row's logits are not finite.
/// @param targets [rows], the token whose rank is computed for each row; negative: none. nullptr: none at all
TopTokens top_tokens(const float* logits, size_t rows, int n_vocab, int k, const int32_t* targets,
                     RowThreads& threads);

/// The natural logarithms of the probabilities of given tokens and of the k most probable, exact even if a
/// probability would be rounded to zero.
struct TokenScores {
  std::vector<double> log_probabilities;  // [rows]; 0 for a null row
  int k = 0;
  std::vector<int32_t> top_ids;               // [rows, k], as of TopTokens
  std::vector<double> top_log_probabilities;  // [rows, k]
};

/// Scores tokens against rows of logits. Non-finite values are returned as they are.
/// @param rows [rows], n_vocab logits each; nullptr: skipped
/// @param tokens [rows]
TokenScores score_tokens(const std::vector<const float*>& rows, int n_vocab,
                         const std::vector<int32_t>& tokens, int k, RowThreads& threads);

}  // namespace tapline
