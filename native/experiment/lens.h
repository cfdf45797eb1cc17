#pragma once

#include <vector>

#include "capture/lens_reading.h"
#include "capture/logit_direction.h"
#include "experiment/passes.h"

namespace tapline {

// What reads rows of block outputs without a pass.

/// What the final norm and the head make of rows of a block output: logits, [rows, n_vocab]. Throws
/// kUnsupportedArchitecture where the path from there to the logits is not known.
std::vector<float> lens_logits(Passes& passes, const std::vector<float>& rows);

/// What lenses read of rows of the stream; see LogitLens::read(). Throws kUnsupportedArchitecture where the
/// path from there to the logits is not known, kInvalidArgument where the rows are not this model's.
std::vector<LensReading> read_lens(Passes& passes, LensRequest request, const CancelToken& cancel);

/// How a token's logit depends on the last block's output, [n_embd], with the final norm's scale kept as it
/// is there.
LogitDirection logit_direction(const Passes& passes, const std::vector<float>& state, llama_token token);

}  // namespace tapline
