#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "capture/lens_reading.h"
#include "capture/logit_direction.h"
#include "experiment/passes.h"

namespace tapline {

// Readings of rows of block outputs without a pass. They throw kUnsupportedArchitecture if the path from a
// block output to the logits is unknown.

/// Applies the final norm and the head to rows of a block output: logits, [rows, n_vocab].
std::vector<float> lens_logits(Passes& passes, const std::vector<float>& rows);

/// Rows that were captured earlier. Like LensRequest.
struct GivenRows {
  struct Place {
    std::vector<float> states;
    std::optional<Translator> translator;
  };
  std::vector<Place> places;
  std::vector<float> output;
  int top = 1;
  std::vector<int32_t> targets;
  bool entropy = false;
};

/// See LogitLens::read(). Throws kInvalidArgument if the rows do not fit the model.
std::vector<LensReading> read_lens(Passes& passes, const GivenRows& given, const CancelToken& cancel);

/// A token's logit as a linear function of the last block's output, [n_embd], with the final norm's scale
/// fixed at `state`.
LogitDirection logit_direction(const Passes& passes, const std::vector<float>& state, llama_token token);

}  // namespace tapline
