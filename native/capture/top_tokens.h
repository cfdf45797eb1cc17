#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/thread_team.h"

namespace tapline {

/// The k most probable tokens of each row, most probable first, ties by token id; and where its target
/// stands, if there are targets.
struct TopTokens {
  int k = 0;
  std::vector<int32_t> ids;                 // [rows, k]
  std::vector<float> probabilities;         // [rows, k], softmax over the whole vocabulary
  std::vector<float> target_probabilities;  // [rows]
  std::vector<int32_t> target_ranks;        // [rows]; 1: the most probable, ties by token id; 0: no target
};

/// Threads for rows of logits: begun by the first rows that are worth them, and kept for the next. For one
/// caller at a time.
class RowThreads {
 public:
  explicit RowThreads(int n_threads);

  /// Calls work(row) for each row of logits, on as many threads as are worth it: one costs more than a small
  /// vocabulary's rows.
  void each_row(size_t rows, int n_vocab, const std::function<void(size_t)>& work);

 private:
  int n_threads_;
  std::unique_ptr<ThreadTeam> team_;
};

/// Turns rows of logits into their top k. Throws kCompute where a row's logits are not finite.
/// @param targets [rows], the token whose place is wanted of each; negative: none. nullptr: none at all
TopTokens top_tokens(const float* logits, size_t rows, int n_vocab, int k, const int32_t* targets,
                     RowThreads& threads);

/// How probable tokens that are known were, and the k most probable in their place: natural logarithms, which
/// are exact also where the probability itself would be rounded to zero.
struct TokenScores {
  std::vector<double> log_probabilities;  // [rows]; 0 where there was no row
  int k = 0;
  std::vector<int32_t> top_ids;               // [rows, k], as of TopTokens
  std::vector<double> top_log_probabilities;  // [rows, k]
};

/// Scores tokens against rows of logits. Non-finite values are returned as they are.
/// @param rows [rows], n_vocab logits each; nullptr: this one is left out
/// @param tokens [rows]
TokenScores score_tokens(const std::vector<const float*>& rows, int n_vocab,
                         const std::vector<int32_t>& tokens, int k, RowThreads& threads);

}  // namespace tapline
