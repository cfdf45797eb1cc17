#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "capture/lens_translator.h"
#include "capture/top_tokens.h"

namespace tapline {

/// Rows of one place, [rows, n_embd].
struct LensRows {
  const float* states = nullptr;
  const Translator* translator = nullptr;  // null: the logit lens itself
};

struct LensRequest {
  std::vector<LensRows> places;
  size_t rows = 0;                // of each place
  const float* output = nullptr;  // rows of the last block for divergences; or null
  int top = 0;                    // most probable tokens per row
  std::vector<int32_t> targets;   // [rows], as of top_tokens(); empty: none
  bool entropy = false;
};

/// The lens of one place's rows.
struct LensReading {
  TopTokens top;
  std::vector<float> entropies;    // [rows], nats; empty unless requested
  std::vector<float> divergences;  // [rows], KL(output, reading) in nats; empty without `output`
};

}  // namespace tapline
