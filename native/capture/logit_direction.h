#pragma once

#include <vector>

#include "capture/lens_recipe.h"

namespace tapline {

/// One token's logit as a linear function of the input of the final norm, with the norm's scale fixed at one
/// state: logit = direction . state + constant, to the rounding of float64 (direct logit attribution: Elhage
/// et al., "A Mathematical Framework for Transformer Circuits", 2021).
struct LogitDirection {
  std::vector<double> direction;  // [n_embd]
  double constant = 0;            // biases of the norm and the head
};

/// For `token` at `state`, [n_embd], an output of the last block. Weights are dequantised, without the
/// rounding of products. Throws kUnsupportedArchitecture if the path after the last block is not linear with
/// a fixed norm (a soft cap), or if the head cannot be read.
LogitDirection logit_direction(const LensRecipe& recipe, const std::vector<float>& state, int token);

/// The same for a row of the head, [n_embd], that was read elsewhere: of `token`, or with -1 the mean of all
/// rows, for the mean of all logits.
LogitDirection head_direction(const LensRecipe& recipe, const std::vector<float>& state, int token,
                              std::vector<double> head_row);

/// The recipe up to the logits before a soft cap; the same where there is none.
LensRecipe before_cap(LensRecipe recipe);

/// The output matrix; throws kUnsupportedArchitecture if there is none.
const ggml_tensor* head_of(const LensRecipe& recipe);

}  // namespace tapline
