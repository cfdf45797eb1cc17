#include "capture/path_steps.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tapline {

namespace {

/// Where each number of a view is in its source's rows, each a token's; empty if it does not select from
/// them.
std::vector<int32_t> places_in_row(const ggml_tensor* view, int64_t width, int64_t n_tokens) {
  const ggml_tensor* source = view->src[0];
  const size_t base = source->view_src == nullptr ? 0 : source->view_offs;
  if (!ggml_is_contiguous(source) || view->view_offs < base) return {};
  int tokens = GGML_MAX_DIMS - 1;
  while (tokens > 0 && view->ne[tokens] == 1 && n_tokens > 1) --tokens;
  if (view->ne[tokens] != n_tokens || view->nb[tokens] != static_cast<size_t>(width) * sizeof(float))
    return {};
  std::vector<int32_t> places{static_cast<int32_t>((view->view_offs - base) / sizeof(float))};
  for (int d = tokens; d-- > 0;) {
    std::vector<int32_t> wider;
    for (const int32_t place : places) {
      for (int64_t i = 0; i < view->ne[d]; ++i)
        wider.push_back(place + static_cast<int32_t>(i * static_cast<int64_t>(view->nb[d] / sizeof(float))));
    }
    places = std::move(wider);
  }
  const bool inside = std::all_of(places.begin(), places.end(), [&](int32_t at) { return at < width; });
  return inside ? places : std::vector<int32_t>{};
}

std::string step_name(const ggml_tensor* t) {
  return "the step '" + std::string(t->name) + "' (" + ggml_op_desc(t) + ")";
}

}  // namespace

std::string StepReader::read(int start, int end, std::vector<PathStep>& steps) const {
  std::string why;
  for (int at = end; at != start;) {
    const ggml_tensor* t = graph_.node(at);
    at = before(at, steps, why);
    if (!why.empty()) return why;
    if (at < start) return step_name(t) + " does not follow from the block's input alone";
  }
  std::reverse(steps.begin(), steps.end());
  return {};
}

int StepReader::read_back(int end, std::vector<PathStep>& steps) const {
  std::string why;
  int at = end;
  for (int next = at; next >= 0; next = before(at, steps, why)) at = next;
  std::reverse(steps.begin(), steps.end());
  return at;
}

int StepReader::before(int at, std::vector<PathStep>& steps, std::string& why) const {
  const ggml_tensor* t = graph_.node(at);
  const ggml_tensor* weight = nullptr;
  int operand = -1;  // through which the row comes
  for (int s = 0; s < GGML_MAX_SRC; ++s) {
    const ggml_tensor* source = t->src[s];
    if (source == nullptr) continue;
    if (graph_.index_of(source) < 0) {
      weight = source;
    } else if (operand < 0) {
      operand = s;
    } else {
      why = step_name(t) + " combines two rows that depend on the tokens";
      return -1;
    }
  }
  PathStep step{};
  if (operand < 0) {
    why = step_name(t) + " does not follow from the block's input alone";
  } else if (!understand(t, t->src[operand], own(weight), operand, step)) {
    why = step_name(t) + " is not linear, or not on rows";
  }
  if (!why.empty()) return -1;
  if (step.out > 0) steps.push_back(std::move(step));
  return graph_.index_of(t->src[operand]);
}

/// The model's weight for a leaf or its copy on a device; null for other leaves.
const ggml_tensor* StepReader::own(const ggml_tensor* leaf) const {
  if (leaf == nullptr || (leaf->flags & GGML_TENSOR_FLAG_INPUT) != 0) return nullptr;
  return model_.owns(leaf) ? leaf : model_.tensor(GraphView::original_name(leaf));
}

/// Writes a step; one that leaves rows as they are has no width after it.
bool StepReader::understand(const ggml_tensor* t, const ggml_tensor* from, const ggml_tensor* weight,
                            int operand, PathStep& step) const {
  using Kind = PathStep::Kind;
  const int in = width_of(from);
  const int out = width_of(t);
  const auto set = [&](Kind kind, float a = 0, float b = 0) {
    step = {kind, in, out, static_cast<int>(t->ne[0]), a, b, nullptr, {}};
    return true;
  };
  if (ggml_nelements(from) % n_tokens_ != 0 || ggml_nelements(t) % n_tokens_ != 0) return false;
  switch (t->op) {
    case GGML_OP_GET_ROWS:  // the rows with outputs: all of them in this graph
      return operand == 0 && weight == nullptr && ggml_nelements(t) == ggml_nelements(from);
    case GGML_OP_RESHAPE:
    case GGML_OP_CONT:
      return in == out && from->op != GGML_OP_PERMUTE && from->op != GGML_OP_TRANSPOSE;
    case GGML_OP_PAD:  // zeros after the row, where the cache's rows are wider
      return t->op_params[0] == 0 && from->ne[0] == in && t->ne[0] == out;
    case GGML_OP_VIEW: {
      std::vector<int32_t> places = places_in_row(t, in, n_tokens_);
      if (places.size() != static_cast<size_t>(out)) return false;
      std::vector<int32_t> same(static_cast<size_t>(in));
      std::iota(same.begin(), same.end(), 0);
      if (places == same) return true;
      set(Kind::kTake);
      step.take = std::move(places);
      return true;
    }
    case GGML_OP_RMS_NORM:
      return set(Kind::kRmsNorm, op_float(t, 0));
    case GGML_OP_NORM:
      return set(Kind::kLayerNorm, op_float(t, 0));
    case GGML_OP_SCALE:
      return set(Kind::kScale, op_float(t, 0), op_float(t, 1));
    case GGML_OP_ADD:
    case GGML_OP_MUL: {
      if (weight == nullptr || operand != 0) return false;
      const int64_t count = ggml_nelements(weight);
      if (count != 1 && count != t->ne[0] && count != in) return false;
      set(t->op == GGML_OP_ADD ? Kind::kAdd : Kind::kMultiply);
      step.weight = weight;
      return true;
    }
    case GGML_OP_MUL_MAT:
      if (weight == nullptr || operand != 1 || weight->ne[0] != in || from->ne[0] != in ||
          weight->ne[1] != out || weight->ne[2] != 1 || weight->ne[3] != 1)
        return false;
      set(Kind::kMatrix);
      step.weight = weight;
      return true;
    default:
      return false;
  }
}

}  // namespace tapline
