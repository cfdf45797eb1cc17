#pragma once

#include <vector>

#include "capture/lens_recipe.h"

namespace tapline {

/// One token's logit as a linear function of the state that goes into the final norm, with the norm's scale
/// kept as it is for one state: logit = direction . state + constant, to the rounding of float64 (direct
/// logit attribution: Elhage et al., "A Mathematical Framework for Transformer Circuits", 2021).
struct LogitDirection {
  std::vector<double> direction;  // [n_embd]
  double constant = 0;            // biases of the norm and the head
};

/// Of `token`, at `state`, [n_embd]: the last block's output. Weights are read as the numbers that they stand
/// for, so that nothing of a product's own rounding is in it. Throws kUnsupportedArchitecture where something
/// behind the last block is not linear once the norm's scale is kept (a soft cap), or where the head cannot
/// be read.
LogitDirection logit_direction(const LensRecipe& recipe, const std::vector<float>& state, int token);

}  // namespace tapline
