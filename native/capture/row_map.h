#pragma once

#include <cstdint>
#include <vector>

#include "llama.h"

namespace tapline {

/// The rows of one micro-batch as llama.cpp computes it.
struct MicroBatch {
  std::vector<int> rows;     // batch index of each row
  std::vector<int> outputs;  // batch index of each row with an output, in row order
  std::vector<llama_token> tokens;
  std::vector<llama_pos> positions;
};

/// How llama_decode splits a batch into micro-batches.
enum class SplitKind {
  kInOrder,        // attention over one shared cache: slices of n_ubatch tokens
  kEqual,          // hybrid memories: pieces of equal length from every sequence, grouped by sequence
  kEqualAscending  // recurrent memories: the same, from sequences with ascending ids only
};

/// Predicts the micro-batches of a batch (llama_batch_allocr::split_simple and split_equal). Each token
/// belongs to one sequence. The tap compares the prediction with the token ids that the graph reads.
/// `n_rs_seq`: saved states per sequence of a recurrent memory (llama_n_rs_seq); the last 1 + n_rs_seq tokens
/// of a sequence then stay in one micro-batch.
std::vector<MicroBatch> plan_micro_batches(const llama_batch& batch, SplitKind kind, uint32_t n_ubatch,
                                           uint32_t n_rs_seq);

}  // namespace tapline
