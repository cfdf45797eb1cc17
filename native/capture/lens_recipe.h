#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "capture/graph_view.h"
#include "ggml.h"
#include "model/model.h"

namespace tapline {

/// One row-wise operation between the last block's output and the logits.
struct LensStep {
  enum class Kind { kRmsNorm, kLayerNorm, kMultiply, kAdd, kMatrix, kScale, kTanh };
  Kind kind;
  float a = 0;                    // epsilon of a norm, factor of a scale
  float b = 0;                    // offset of a scale
  ggml_tensor* weight = nullptr;  // of the model, which outlives every recipe
  std::array<int32_t, GGML_MAX_OP_PARAMS / sizeof(int32_t)> params{};  // of a matrix product: its precision
};

/// The model's steps from a block output to logits (final norm, output matrix, scaling, soft cap), read from
/// its compute graph, so that a logit lens applies exactly the same (nostalgebraist, "interpreting GPT: the
/// logit lens", 2020).
struct LensRecipe {
  bool supported = false;
  std::string reason;  // one sentence, when not supported
  std::vector<LensStep> steps;
};

/// Reads the recipe between node `last_block` and node `logits` (-1: the model has no output head).
LensRecipe read_lens_recipe(const GraphView& graph, const Model& model, int last_block, int logits);

}  // namespace tapline
