#include "capture/lens_recipe.h"

#include <algorithm>

namespace tapline {

namespace {

/// Operations that select or reshape rows without changing them.
bool keeps_rows(const ggml_tensor* t) {
  switch (t->op) {
    case GGML_OP_GET_ROWS:  // the rows with outputs
    case GGML_OP_RESHAPE:
    case GGML_OP_VIEW:
    case GGML_OP_CONT:
      return true;
    default:
      return false;
  }
}

LensRecipe unsupported(const std::string& reason) {
  LensRecipe recipe;
  recipe.reason = reason;
  return recipe;
}

}  // namespace

LensRecipe read_lens_recipe(const GraphView& graph, const Model& model, int last_block, int logits) {
  if (logits < 0) return unsupported("The model has no output head, so a logit lens is impossible.");
  std::vector<LensStep> steps;
  const std::vector<bool> flows = graph.reached_from(last_block);
  int at = logits;
  while (at != last_block) {
    const ggml_tensor* t = graph.node(at);
    // Exactly one input comes from the block output; the others must be tensors of the model.
    int flow = -1;
    ggml_tensor* weight = nullptr;
    bool weight_first = false;
    bool plain = true;
    for (int s = 0; s < GGML_MAX_SRC; ++s) {
      ggml_tensor* source = t->src[s];
      if (source == nullptr) continue;
      const int index = graph.index_of(source);
      if (index >= 0 && flows[static_cast<size_t>(index)]) {
        plain = plain && (flow < 0 || flow == index);
        flow = index;
      } else if (index < 0 && weight == nullptr) {
        // Copies on other devices are freed with this graph; the model's tensor stays. Tied embeddings are
        // two tensors with the same name, for the input on the host and for the head on its device: the graph
        // has the right one.
        ggml_tensor* own = model.owns(source) ? source : model.tensor(GraphView::original_name(source));
        weight = own != nullptr ? own : source;
        weight_first = s == 0;
      } else {
        plain = false;
      }
    }
    const std::string name = t->name;
    if (flow < 0 || !plain) {
      return unsupported("The step '" + name +
                         "' after the last block is not row-wise, so a logit lens is impossible.");
    }
    const bool is_input = weight != nullptr && (weight->flags & GGML_TENSOR_FLAG_INPUT) != 0;
    const bool has_weight = weight != nullptr && !is_input;
    if (keeps_rows(t)) {
      if (t->ne[0] != graph.node(flow)->ne[0]) {
        return unsupported("The step '" + name +
                           "' after the last block reshapes rows, so a logit lens is impossible.");
      }
    } else if (t->op == GGML_OP_RMS_NORM) {
      steps.push_back({LensStep::Kind::kRmsNorm, op_float(t, 0)});
    } else if (t->op == GGML_OP_NORM) {
      steps.push_back({LensStep::Kind::kLayerNorm, op_float(t, 0)});
    } else if (t->op == GGML_OP_SCALE) {
      steps.push_back({LensStep::Kind::kScale, op_float(t, 0), op_float(t, 1)});
    } else if (t->op == GGML_OP_UNARY && ggml_get_unary_op(t) == GGML_UNARY_OP_TANH) {
      steps.push_back({LensStep::Kind::kTanh});
    } else if (t->op == GGML_OP_MUL && has_weight && !weight_first) {
      steps.push_back({LensStep::Kind::kMultiply, 0, 0, weight});
    } else if (t->op == GGML_OP_ADD && has_weight && !weight_first) {
      steps.push_back({LensStep::Kind::kAdd, 0, 0, weight});
    } else if (t->op == GGML_OP_MUL_MAT && has_weight && weight_first) {
      LensStep product{LensStep::Kind::kMatrix, 0, 0, weight};
      std::copy(std::begin(t->op_params), std::end(t->op_params), product.params.begin());
      steps.push_back(product);
    } else {
      return unsupported("The step '" + name + "' (" + ggml_op_desc(t) +
                         ") after the last block is not supported by the logit lens.");
    }
    at = flow;
  }
  std::reverse(steps.begin(), steps.end());
  LensRecipe recipe;
  recipe.supported = true;
  recipe.steps = std::move(steps);
  return recipe;
}

}  // namespace tapline
