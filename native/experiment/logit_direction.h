#pragma once

#include <vector>

#include "capture/logit_direction.h"
#include "experiment/passes.h"

namespace tapline {

/// How a token's logit depends on the last block's output, [n_embd], with the final norm's scale kept as it
/// is there. Computes no pass.
LogitDirection logit_direction(const Passes& passes, const std::vector<float>& state, llama_token token);

}  // namespace tapline
