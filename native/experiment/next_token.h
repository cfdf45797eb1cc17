#pragma once

#include "llama.h"

namespace tapline {

/// The token with the highest logit, the first in ties; -1 if a logit is NaN or plus infinity. (Some models
/// give minus infinity to impossible tokens.)
llama_token most_probable(const float* logits, int n_vocab);

/// The token at the cumulative probability `draw`, 0 <= draw < 1, by token id, after division of the logits
/// by the temperature; -1 if a logit is NaN or plus infinity.
llama_token drawn_token(const float* logits, int n_vocab, float temperature, double draw);

}  // namespace tapline
