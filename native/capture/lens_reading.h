#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "capture/lens_translator.h"
#include "capture/top_tokens.h"

namespace tapline {

/// Rows of one place that a lens reads, [rows, n_embd].
struct LensRows {
  std::vector<float> states;
  std::optional<Translator> translator;  // none: the logit lens itself
};

struct LensRequest {
  std::vector<LensRows> places;  // each with as many rows
  /// Rows of the last block, with which every place's answer is compared; empty: with none.
  std::vector<float> output;
  int top = 0;                   // most probable tokens of each row
  std::vector<int32_t> targets;  // [rows], as of top_tokens(); empty: none
  bool entropy = false;
};

/// What a lens reads of one place's rows.
struct LensReading {
  TopTokens top;
  std::vector<float> entropies;  // [rows], nats; empty unless asked for
  /// [rows], KL of the model's output from the reading, nats; empty without one.
  std::vector<float> divergences;
};

/// How far two distributions are apart: sum of p (log p - log q), of the softmax of each row of logits, in
/// nats. What p gives no probability counts nothing.
double divergence(const float* p, const float* q, int n_vocab);

/// Entropy of a row of logits' softmax, in nats.
double entropy(const float* logits, int n_vocab);

}  // namespace tapline
