#include "capture/lens_translator.h"

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/narrow.h"
#include "ggml-cpp.h"
#include "ggml.h"

namespace tapline {

void translate(ggml_backend_t backend, const Translator& translator, std::vector<float>& rows, int n_embd) {
  const auto width = static_cast<size_t>(n_embd);
  const size_t weights = width * width;
  const MappedFile file(translator.path);
  std::vector<float> widened;
  const float* matrix = nullptr;
  if (translator.half) {
    widened.resize(weights);
    widen(file.halves(translator.matrix, weights), weights, NarrowType::kF16, widened.data());
    matrix = widened.data();
  } else {
    matrix = file.floats(translator.matrix, weights);
  }

  constexpr size_t kNodes = 8;
  const ggml_context_ptr ctx(
      ggml_init({ggml_tensor_overhead() * kNodes + ggml_graph_overhead_custom(kNodes, false), nullptr,
                 /*no_alloc=*/true}));
  ggml_tensor* weight = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, n_embd, n_embd);
  ggml_tensor* bias = ggml_new_tensor_1d(ctx.get(), GGML_TYPE_F32, n_embd);
  ggml_tensor* input =
      ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, n_embd, static_cast<int64_t>(rows.size() / width));
  ggml_tensor* output = ggml_mul_mat(ctx.get(), weight, input);
  ggml_prec_set_acc(output, GGML_PREC_F32);
  if (translator.bias > 0) output = ggml_add(ctx.get(), output, bias);
  if (translator.residual) output = ggml_add(ctx.get(), output, input);
  ggml_cgraph* graph = ggml_new_graph_custom(ctx.get(), kNodes, false);
  ggml_build_forward_expand(graph, output);
  const ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors(ctx.get(), backend));
  if (!buffer) throw Error(ErrorCode::kOutOfMemory, "There is not enough memory for the lens.");
  ggml_backend_tensor_set(weight, matrix, 0, weights * sizeof(float));
  if (translator.bias > 0)
    ggml_backend_tensor_set(bias, file.floats(translator.bias, width), 0, width * sizeof(float));
  ggml_backend_tensor_set(input, rows.data(), 0, rows.size() * sizeof(float));
  if (ggml_backend_graph_compute(backend, graph) != GGML_STATUS_SUCCESS)
    throw Error(ErrorCode::kCompute, "The lens could not be computed.");
  ggml_backend_tensor_get(output, rows.data(), 0, rows.size() * sizeof(float));
}

}  // namespace tapline
