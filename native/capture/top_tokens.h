#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

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

/// Turns rows of logits into their top k, on `n_threads` threads. Throws kCompute where a row's logits are
/// not finite.
/// @param targets [rows], the token whose place is wanted of each; negative: none. nullptr: none at all
TopTokens top_tokens(const float* logits, size_t rows, int n_vocab, int k, const int32_t* targets,
                     int n_threads);

/// Calls work(row) for each row of logits, on as many threads as are worth it: one costs more than a small
/// vocabulary's rows. The work must not throw.
void each_row(size_t rows, int n_vocab, int n_threads, const std::function<void(size_t)>& work);

/// How probable tokens that are known were, and the k most probable in their place: natural logarithms, which
/// are exact also where the probability itself would be rounded to zero.
struct TokenScores {
  std::vector<double> log_probabilities;  // [rows]; 0 where there was no row
  int k = 0;
  std::vector<int32_t> top_ids;               // [rows, k], as of TopTokens
  std::vector<double> top_log_probabilities;  // [rows, k]
};

/// Scores tokens against rows of logits, on `n_threads` threads. What is not finite is told as it is.
/// @param rows [rows], n_vocab logits each; nullptr: this one is left out
/// @param tokens [rows]
TokenScores score_tokens(const std::vector<const float*>& rows, int n_vocab,
                         const std::vector<int32_t>& tokens, int k, int n_threads);

}  // namespace tapline
