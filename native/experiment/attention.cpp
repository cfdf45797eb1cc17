#include "experiment/attention.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "experiment/checks.h"
#include "ggml-backend.h"

namespace tapline {

namespace {

/// The rounding of a row's sum of float32 numbers.
constexpr double kSumTolerance = 1e-3;

/// One number of a tensor on the host, of an unquantised type.
double number_at(const ggml_tensor* t, size_t i, size_t j, size_t k) {
  const char* at = static_cast<const char*>(t->data) + i * t->nb[0] + j * t->nb[1] + k * t->nb[2];
  switch (t->type) {
    case GGML_TYPE_F32:
      return *reinterpret_cast<const float*>(at);
    case GGML_TYPE_F16:
      return ggml_fp16_to_fp32(*reinterpret_cast<const ggml_fp16_t*>(at));
    case GGML_TYPE_BF16:
      return ggml_bf16_to_fp32(*reinterpret_cast<const ggml_bf16_t*>(at));
    default:
      throw Error(ErrorCode::kUnsupportedArchitecture,
                  "Attention cannot be proven with a quantised V cache.");
  }
}

}  // namespace

AttentionReader::AttentionReader(Passes& passes, const AttentionRequest& request, size_t tokens)
    : tokens_(tokens), causal_(passes.causal()) {
  check_layers(passes, request.layers);
  for (const int layer : request.layers) {
    const Site& site = check_place(passes, {layer, Point::kAttention});
    if (request.prove) check_place(passes, {layer, Point::kHeadOut});
    std::vector<int> heads = request.heads;
    for (int head = 0; request.heads.empty() && head < site.heads; ++head) heads.push_back(head);
    for (const int head : heads) {
      if (head >= 0 && head < site.heads) continue;
      throw_error(ErrorCode::kInvalidArgument, "Head ", head, " does not exist: block ", layer, " has ",
                  site.heads, " heads, 0 to ", site.heads - 1, ".");
    }
    check_distinct(heads, [](int head) { return "Head " + std::to_string(head); });
    std::vector<float> weights(heads.size() * tokens * tokens);
    layers_.push_back({layer, std::move(heads), std::move(weights)});
  }
  if (!layers_.empty() && passes.sequence().n_past > 0) {
    throw Error(ErrorCode::kInvalidArgument, "Attention needs the whole text in one pass; reset first.");
  }
}

void AttentionReader::take(const TappedRows& tapped) {
  const auto found = std::find_if(layers_.begin(), layers_.end(),
                                  [&](const LayerAttention& layer) { return layer.layer == tapped.layer; });
  if (found == layers_.end()) return;
  if (tapped.point == Point::kHeadOut) return prove(*found, tapped);
  const size_t cells = tapped.width;
  if (tapped.count != tokens_ || cells < tokens_)
    throw_error(ErrorCode::kInternal, "The attention of block ", tapped.layer, " has ", cells, " cells for ",
                tapped.count, " tokens.");
  const bool sinks = tapped.tensor->src[2] != nullptr;
  for (size_t h = 0; h < found->heads.size(); ++h) {
    const auto head = static_cast<size_t>(found->heads[h]);
    for (size_t row = 0; row < tokens_; ++row) {
      const float* values = tapped.values + (head * tapped.count + row) * cells;
      const auto token = static_cast<size_t>((*tapped.indices)[row]);
      check_row(values, token, cells, sinks, tapped.layer);
      std::copy_n(values, tokens_, found->weights.data() + (h * tokens_ + token) * tokens_);
    }
  }
}

void AttentionReader::check_row(const float* row, size_t token, size_t cells, bool sinks, int layer) const {
  double sum = 0;
  for (size_t cell = 0; cell < cells; ++cell) sum += static_cast<double>(row[cell]);
  const std::string where =
      "The attention of block " + std::to_string(layer) + " at token " + std::to_string(token);
  if (!std::isfinite(sum))
    throw_error(ErrorCode::kCompute, where, " is not finite; the model file may be damaged.");
  if (sum > 1 + kSumTolerance || (!sinks && sum < 1 - kSumTolerance))
    throw_error(ErrorCode::kInternal, where, " sums to ", sum, ", not to 1.");
  const size_t end = causal_ ? token + 1 : tokens_;
  const bool later = std::any_of(row + end, row + cells, [](float weight) { return weight != 0; });
  if (later) throw_error(ErrorCode::kInternal, where, " reads masked cells.");
}

/// `tapped.tensor` concatenates the heads' outputs: CONT(PERMUTE(values x weights)).
void AttentionReader::prove(LayerAttention& layer, const TappedRows& tapped) const {
  const ggml_tensor* permuted = tapped.tensor->src[0];
  const ggml_tensor* product = permuted == nullptr ? nullptr : permuted->src[0];
  const ggml_tensor* v = product == nullptr ? nullptr : product->src[0];
  const ggml_tensor* kept = v == nullptr || v->view_src == nullptr ? v : v->view_src;
  // Values outside a cache have been overwritten by the product.
  const bool there = v != nullptr && product->op == GGML_OP_MUL_MAT && kept->buffer != nullptr &&
                     ggml_backend_buffer_is_host(kept->buffer) &&
                     std::string(kept->name).rfind("cache_", 0) == 0;
  if (!there) {
    throw Error(ErrorCode::kUnsupportedArchitecture,
                "Attention can only be proven if the V cache is on the host.");
  }
  const auto length = static_cast<size_t>(product->ne[0]);
  const auto all = static_cast<size_t>(product->ne[2]);
  const size_t group = all / static_cast<size_t>(v->ne[2]);
  double difference = 0;
  double size = 0;
  for (size_t h = 0; h < layer.heads.size(); ++h) {
    const auto head = static_cast<size_t>(layer.heads[h]);
    for (size_t row = 0; row < tokens_; ++row) {
      const auto token = static_cast<size_t>((*tapped.indices)[row]);
      const float* weights = layer.weights.data() + (h * tokens_ + token) * tokens_;
      const float* read = tapped.values + row * tapped.width + head * length;
      for (size_t c = 0; c < length; ++c) {
        double sum = 0;
        for (size_t j = 0; j < tokens_; ++j)
          sum += static_cast<double>(weights[j]) * number_at(v, j, c, head / group);
        const auto value = static_cast<double>(read[c]);
        difference += (sum - value) * (sum - value);
        size += sum * sum;
      }
    }
  }
  layer.apart = size == 0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

}  // namespace tapline
