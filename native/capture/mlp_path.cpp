#include "capture/mlp_path.h"

#include <optional>
#include <utility>

namespace tapline {

namespace {

std::optional<Activation> of_unary(const ggml_tensor* t) {
  if (t->op == GGML_OP_SQR && t->src[0]->op == GGML_OP_UNARY &&
      ggml_get_unary_op(t->src[0]) == GGML_UNARY_OP_RELU)
    return Activation::kReluSquared;
  if (t->op != GGML_OP_UNARY) return std::nullopt;
  switch (ggml_get_unary_op(t)) {
    case GGML_UNARY_OP_RELU:
      return Activation::kRelu;
    case GGML_UNARY_OP_SILU:
      return Activation::kSilu;
    case GGML_UNARY_OP_GELU:
      return Activation::kGelu;
    case GGML_UNARY_OP_GELU_ERF:
      return Activation::kGeluErf;
    case GGML_UNARY_OP_GELU_QUICK:
      return Activation::kGeluQuick;
    default:
      return std::nullopt;
  }
}

std::optional<Activation> of_gate(const ggml_tensor* t) {
  switch (ggml_get_glu_op(t)) {
    case GGML_GLU_OP_REGLU:
      return Activation::kRelu;
    case GGML_GLU_OP_SWIGLU:
      return Activation::kSilu;
    case GGML_GLU_OP_GEGLU:
      return Activation::kGelu;
    case GGML_GLU_OP_GEGLU_ERF:
      return Activation::kGeluErf;
    case GGML_GLU_OP_GEGLU_QUICK:
      return Activation::kGeluQuick;
    default:
      return std::nullopt;
  }
}

/// Selects half of a row of two.
PathStep half(int width, bool second) {
  PathStep step{};
  step.kind = PathStep::Kind::kTake;
  step.in = 2 * width;
  step.out = width;
  for (int k = 0; k < width; ++k) step.take.push_back(second ? width + k : k);
  return step;
}

MlpPath read_path(const GraphView& graph, const Model& model, const BlockPoints& points, int layer,
                  int64_t n_tokens) {
  MlpPath path;
  const Point input = points.parallel ? Point::kBlockIn : Point::kMid;
  for (const Point point : {input, Point::kFfnOut}) {
    if (points.at(point).supported) continue;
    path.why = "its " + std::string(name_of(point)) + " is not proven";
    return path;
  }
  const StepReader reader(graph, model, n_tokens);
  const int from = points.site({layer, input}).node;
  const int end = points.site({layer, Point::kFfnOut}).node;
  const int hidden = reader.read_back(end, path.output);
  const ggml_tensor* t = graph.node(hidden);
  const std::string what = "'" + std::string(t->name) + "' (" + ggml_op_desc(t) + ")";
  path.gated = t->op == GGML_OP_GLU;
  const std::optional<Activation> activation = path.gated ? of_gate(t) : of_unary(t);
  if (hidden <= from || !activation) {
    path.why = what + " is not the activation function of a dense MLP";
    return path;
  }
  path.activation = *activation;
  path.neurons = reader.width_of(t);
  const ggml_tensor* gate = path.activation == Activation::kReluSquared ? t->src[0]->src[0] : t->src[0];
  path.why = reader.read(from, graph.index_of(gate), path.gate);
  if (path.why.empty() && path.gated) {
    if (t->src[1] == nullptr) {
      const bool swapped = t->op_params[1] != 0;
      path.input = std::move(path.gate);
      path.gate = {half(path.neurons, swapped)};
      path.up = {half(path.neurons, !swapped)};
    } else {
      path.why = reader.read(from, graph.index_of(t->src[1]), path.up);
    }
  }
  return path;
}

}  // namespace

std::vector<MlpPath> read_mlp_paths(const GraphView& graph, const Model& model, const BlockPoints& points,
                                    int64_t n_tokens, const std::string& subject) {
  return paths_of_blocks(model, subject, "path through a dense MLP",
                         [&](int layer) { return read_path(graph, model, points, layer, n_tokens); });
}

}  // namespace tapline
