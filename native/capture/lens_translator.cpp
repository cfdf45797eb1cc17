#include "capture/lens_translator.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "base/error.h"
#include "base/mapped_file.h"

namespace tapline {

namespace {

/// Products of fewer than six rows add up in another order (native/products).
constexpr int64_t kLeastRows = 8;
/// Widened numbers of the matrix that stay in a processor's cache until they are multiplied.
constexpr int64_t kWidenedAtOnce = 256 * 1024;

auto key_of(const Translator& translator) {
  return std::tie(translator.path, translator.half, translator.matrix, translator.bias, translator.residual);
}

[[noreturn]] void refuse_memory() {
  throw Error(ErrorCode::kOutOfMemory, "There is not enough memory for the lens.");
}

}  // namespace

bool operator<(const Translator& a, const Translator& b) {
  return key_of(a) < key_of(b);
}

LoadedTranslator::LoadedTranslator(ggml_backend_t backend, const Translator& translator, int n_embd)
    : backend_(backend),
      n_embd_(n_embd),
      residual_(translator.residual),
      weights_(ggml_init({2 * ggml_tensor_overhead(), nullptr, /*no_alloc=*/true})),
      scratch_(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend))) {
  const auto width = static_cast<size_t>(n_embd);
  const MappedFile file(translator.path);
  const void* matrix = translator.half
                           ? static_cast<const void*>(file.halves(translator.matrix, width * width))
                           : file.floats(translator.matrix, width * width);
  matrix_ =
      ggml_new_tensor_2d(weights_.get(), translator.half ? GGML_TYPE_F16 : GGML_TYPE_F32, n_embd, n_embd);
  if (translator.bias > 0) bias_ = ggml_new_tensor_1d(weights_.get(), GGML_TYPE_F32, n_embd);
  buffer_.reset(ggml_backend_alloc_ctx_tensors(weights_.get(), backend));
  if (!buffer_) refuse_memory();
  ggml_backend_tensor_set(matrix_, matrix, 0, ggml_nbytes(matrix_));
  if (bias_ != nullptr)
    ggml_backend_tensor_set(bias_, file.floats(translator.bias, width), 0, ggml_nbytes(bias_));
}

void LoadedTranslator::apply(std::vector<float>& rows) {
  const int64_t count = static_cast<int64_t>(rows.size()) / n_embd_;
  const bool half = matrix_->type == GGML_TYPE_F16;
  const int64_t at_once = half ? std::max<int64_t>(64, kWidenedAtOnce / n_embd_ / 64 * 64) : n_embd_;
  const auto parts = static_cast<size_t>((n_embd_ + at_once - 1) / at_once);
  const size_t nodes = 5 * parts + 4;
  const ggml_context_ptr ctx(
      ggml_init({ggml_tensor_overhead() * (nodes + 2) + ggml_graph_overhead_custom(nodes, false), nullptr,
                 /*no_alloc=*/true}));
  ggml_cgraph* graph = ggml_new_graph_custom(ctx.get(), nodes, false);
  ggml_tensor* input = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, n_embd_, std::max(count, kLeastRows));
  ggml_set_input(input);
  ggml_tensor* output = ggml_dup_tensor(ctx.get(), input);
  // Written piece by piece, so its memory must not be used for other nodes before.
  ggml_set_input(output);
  for (int64_t first = 0; first < n_embd_; first += at_once) {
    const int64_t outputs = std::min<int64_t>(at_once, n_embd_ - first);
    ggml_tensor* weight = ggml_view_2d(ctx.get(), matrix_, n_embd_, outputs, matrix_->nb[1],
                                       static_cast<size_t>(first) * matrix_->nb[1]);
    // Products with halves would round the rows to halves, too.
    if (half) weight = ggml_cast(ctx.get(), weight, GGML_TYPE_F32);
    ggml_tensor* part = ggml_mul_mat(ctx.get(), weight, input);
    ggml_prec_set_acc(part, GGML_PREC_F32);
    ggml_tensor* place = ggml_view_2d(ctx.get(), output, outputs, input->ne[1], output->nb[1],
                                      static_cast<size_t>(first) * sizeof(float));
    ggml_build_forward_expand(graph, ggml_cpy(ctx.get(), part, place));
  }
  ggml_tensor* translated = output;
  if (bias_ != nullptr) translated = ggml_add(ctx.get(), translated, bias_);
  if (residual_) translated = ggml_add(ctx.get(), translated, input);
  ggml_set_output(translated);
  ggml_build_forward_expand(graph, translated);
  if (!ggml_gallocr_alloc_graph(scratch_.get(), graph)) refuse_memory();
  const size_t bytes = rows.size() * sizeof(float);
  ggml_backend_tensor_set(input, rows.data(), 0, bytes);
  if (ggml_nbytes(input) > bytes) ggml_backend_tensor_memset(input, 0, bytes, ggml_nbytes(input) - bytes);
  if (ggml_backend_graph_compute(backend_, graph) != GGML_STATUS_SUCCESS)
    throw Error(ErrorCode::kCompute, "The lens could not be computed.");
  ggml_backend_tensor_get(translated, rows.data(), 0, bytes);
}

}  // namespace tapline
