#pragma once

#include "llama.h"

namespace tapline {

/// The highest logit's token, the first of equals; -1 where a logit is NaN or plus infinity. (Some models
/// give minus infinity to what cannot be said.)
llama_token most_probable(const float* logits, int n_vocab);

/// The token at the share `draw` of the probabilities, 0 <= draw < 1, laid end to end by token id, when each
/// logit is divided by the temperature; -1 where a logit is NaN or plus infinity.
llama_token drawn_token(const float* logits, int n_vocab, float temperature, double draw);

}  // namespace tapline
