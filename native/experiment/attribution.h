#pragma once

#include <vector>

#include "experiment/passes.h"
#include "graph/linear_pass.h"

namespace tapline {

/// The value to divide among the model's parts: a linear function of the residual stream at one token, or a
/// logit after it with the final norm's scale fixed, before a soft cap.
struct AttributionTarget {
  int position = 0;  // of its token in the text
  Place place;
  std::vector<float> direction;  // [hidden]; empty: a logit
  double constant = 0;
  llama_token token = -1;
  llama_token minus = -1;  // whose logit is subtracted; negative: the mean of all logits
};

struct AttributionRequest {
  std::vector<llama_token> tokens;
  std::vector<llama_token> other;  // another text with as many tokens, for gains; or none
  std::vector<AttributionTarget> targets;
  size_t neurons = 0;    // passes MLPs, and returns the strongest neurons of each target; 0: neither
  bool precise = false;  // in double precision
};

struct Attribution {
  LinearPass pass;
  double apart_bound = 0;
  double residual_bound = 0;
};

/// Computes a text in one pass and divides each target's value among embeddings, ffn_out and the rounding of
/// the pass, with attention weights and norms fixed; with neurons, among embeddings alone. Clears the
/// context. Throws kUnsupportedArchitecture if the path through a block's attention is unknown, kCompute if a
/// block is farther than `apart_bound` from its linear path or a sum farther than `residual_bound` from its
/// value. `progress` counts blocks.
Attribution attribution(Passes& passes, const AttributionRequest& request, const CancelToken& cancel,
                        const CountProgress& progress);

}  // namespace tapline
