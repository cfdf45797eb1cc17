#include "capture/logit_direction.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.h"
#include "capture/weight_row.h"

namespace tapline {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw_error(ErrorCode::kUnsupportedArchitecture, "Direct logit attribution is impossible here: ", why, ".");
}

std::vector<double> row_of(const ggml_tensor* weight, int64_t row, int64_t count) {
  const WeightRow found = weight_row(weight, row, count);
  if (!found.reason.empty()) refuse(found.reason);
  return {found.values.begin(), found.values.end()};
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Of a bias or a gain of the logits, the number of one token, or with -1 the mean.
double element(const ggml_tensor* weight, int64_t index) {
  // A block of a quantised type has more than one number; biases and gains are not quantised.
  if (ggml_blck_size(weight->type) != 1) refuse("'" + std::string(weight->name) + "' is quantised");
  if (index < 0) return mean(row_of(weight, 0, ggml_nelements(weight)));
  return ggml_nelements(weight) == 1 ? row_of(weight, 0, 1).front() : row_of(weight, 0, index + 1).back();
}

/// A weight that is added to or multiplied with a state: one number per value, or one for all.
std::vector<double> spread(const ggml_tensor* weight, size_t width) {
  if (ggml_nelements(weight) == 1) return std::vector<double>(width, element(weight, 0));
  return row_of(weight, 0, static_cast<int64_t>(width));
}

/// 1 / the norm's scale at `state`; for a layer norm `state` has mean 0.
double inverse_scale(const std::vector<double>& state, float epsilon) {
  return 1 / std::sqrt(dot(state, state) / static_cast<double>(state.size()) + static_cast<double>(epsilon));
}

void centre(std::vector<double>& values) {
  const double middle = mean(values);
  for (double& value : values) value -= middle;
}

}  // namespace

const ggml_tensor* head_of(const LensRecipe& recipe) {
  if (!recipe.supported)
    refuse(recipe.reason.empty() ? "the model has no output head" : "the logit lens is not supported");
  for (const LensStep& step : recipe.steps) {
    if (step.kind == LensStep::Kind::kMatrix) return step.weight;
  }
  refuse("no product follows the last block");
}

LensRecipe before_cap(LensRecipe recipe) {
  const auto is = [](LensStep::Kind kind) {
    return [kind](const LensStep& step) { return step.kind == kind; };
  };
  const auto head = std::find_if(recipe.steps.begin(), recipe.steps.end(), is(LensStep::Kind::kMatrix));
  auto cap = std::find_if(head, recipe.steps.end(), is(LensStep::Kind::kTanh));
  if (cap != recipe.steps.end() && (cap - 1)->kind == LensStep::Kind::kScale) --cap;
  recipe.steps.erase(cap, recipe.steps.end());
  return recipe;
}

LogitDirection logit_direction(const LensRecipe& recipe, const std::vector<float>& state, int token) {
  const ggml_tensor* head = head_of(recipe);
  return head_direction(recipe, state, token, row_of(head, token, static_cast<int64_t>(state.size())));
}

LogitDirection head_direction(const LensRecipe& recipe, const std::vector<float>& state, int token,
                              std::vector<double> head_row) {
  const size_t width = state.size();
  // Forward to the head, for each norm's scale at this state.
  std::vector<double> x(state.begin(), state.end());
  std::vector<double> scales(recipe.steps.size(), 1);
  size_t head = recipe.steps.size();
  for (size_t i = 0; i < recipe.steps.size(); ++i) {
    const LensStep& step = recipe.steps[i];
    if (step.kind == LensStep::Kind::kMatrix) {
      if (head < recipe.steps.size()) refuse("there is more than one product after the last block");
      head = i;
    }
    if (step.kind == LensStep::Kind::kTanh) refuse("the logits are capped by tanh, which is not linear");
    if (i > head && (step.kind == LensStep::Kind::kRmsNorm || step.kind == LensStep::Kind::kLayerNorm))
      refuse("the logits are normalised");
    if (i >= head) continue;
    if (step.kind == LensStep::Kind::kLayerNorm) centre(x);
    if (step.kind == LensStep::Kind::kRmsNorm || step.kind == LensStep::Kind::kLayerNorm) {
      scales[i] = inverse_scale(x, step.a);
      for (double& value : x) value *= scales[i];
    } else if (step.kind == LensStep::Kind::kScale) {
      for (double& value : x) value = value * static_cast<double>(step.a) + static_cast<double>(step.b);
    } else {
      const std::vector<double> weight = spread(step.weight, width);
      for (size_t k = 0; k < width; ++k)
        x[k] = step.kind == LensStep::Kind::kAdd ? x[k] + weight[k] : x[k] * weight[k];
    }
  }
  // Backward from the token's logit.
  LogitDirection found{std::move(head_row), 0};
  double gain = 1;
  for (size_t i = head + 1; i < recipe.steps.size(); ++i) {
    const LensStep& step = recipe.steps[i];
    if (token < 0 && step.kind == LensStep::Kind::kMultiply && ggml_nelements(step.weight) > 1)
      refuse("each token's logit has its own factor");
    const double factor = step.kind == LensStep::Kind::kScale      ? static_cast<double>(step.a)
                          : step.kind == LensStep::Kind::kMultiply ? element(step.weight, token)
                                                                   : 1;
    const double offset = step.kind == LensStep::Kind::kScale ? static_cast<double>(step.b)
                          : step.kind == LensStep::Kind::kAdd ? element(step.weight, token)
                                                              : 0;
    gain *= factor;
    found.constant = found.constant * factor + offset;
  }
  for (double& value : found.direction) value *= gain;
  for (size_t i = head; i-- > 0;) {
    const LensStep& step = recipe.steps[i];
    switch (step.kind) {
      case LensStep::Kind::kMultiply: {
        const std::vector<double> weight = spread(step.weight, width);
        for (size_t k = 0; k < width; ++k) found.direction[k] *= weight[k];
        break;
      }
      case LensStep::Kind::kAdd:
        found.constant += dot(found.direction, spread(step.weight, width));
        break;
      case LensStep::Kind::kScale:
        found.constant += static_cast<double>(step.b) *
                          std::accumulate(found.direction.begin(), found.direction.end(), 0.0);
        for (double& value : found.direction) value *= static_cast<double>(step.a);
        break;
      default:
        for (double& value : found.direction) value *= scales[i];
        if (step.kind == LensStep::Kind::kLayerNorm) centre(found.direction);
    }
  }
  return found;
}

}  // namespace tapline
