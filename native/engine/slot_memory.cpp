#include "engine/slot_memory.h"

#include <algorithm>

#include "ggml-backend.h"
#include "llama-kv-cache-iswa.h"
#include "llama-kv-cache.h"
#include "llama-memory-hybrid-iswa.h"
#include "llama-memory-hybrid.h"
#include "llama-memory-recurrent.h"

namespace tapline {

namespace {

/// One sequence's part of a tensor whose last dimension that is used counts streams.
void wipe_stream(ggml_tensor* tensor, size_t stream, size_t streams) {
  const size_t bytes = ggml_nbytes(tensor) / streams;
  ggml_backend_tensor_memset(tensor, 0, stream * bytes, bytes);
}

void wipe(llama_kv_cache& cache, llama_seq_id sequence) {
  const size_t streams = cache.get_n_stream();
  const size_t stream = streams > 1 ? static_cast<size_t>(sequence) : 0;
  ggml_init_params params{};
  params.mem_size = 16 * ggml_tensor_overhead();
  params.no_alloc = true;
  for (const uint32_t layer : cache.get_layer_ids()) {
    const auto il = static_cast<int32_t>(layer);
    wipe_stream(cache.get_k_storage(il), stream, streams);
    // The values have no getter of their own, but every view of them knows what it looks at.
    ggml_context* views = ggml_init(params);
    llama_kv_cache::slot_info place;
    place.s0 = place.s1 = static_cast<uint32_t>(stream);
    const ggml_tensor* view = cache.get_v(views, il, 1, place);
    if (view != nullptr && view->view_src != nullptr) wipe_stream(view->view_src, stream, streams);
    ggml_free(views);
  }
}

/// The cells that no sequence uses any more.
void wipe(llama_memory_recurrent& memory) {
  const size_t cells = memory.size;
  for (const auto* tensors : {&memory.r_l, &memory.s_l, &memory.p_l}) {
    for (ggml_tensor* tensor : *tensors) {
      if (tensor == nullptr) continue;
      const size_t groups = 1 + memory.n_rs_seq;
      const size_t bytes = ggml_nbytes(tensor) / (groups * cells);
      for (size_t group = 0; group < groups; ++group) {
        for (size_t cell = 0; cell < cells; ++cell) {
          if (memory.cells[cell].is_empty())
            ggml_backend_tensor_memset(tensor, 0, (group * cells + cell) * bytes, bytes);
        }
      }
    }
  }
}

void wipe(llama_kv_cache_iswa& cache, llama_seq_id sequence) {
  wipe(*cache.get_base(), sequence);
  wipe(*cache.get_swa(), sequence);
}

}  // namespace

bool wipe_sequence(llama_memory_t memory, llama_seq_id sequence) {
  if (auto* cache = dynamic_cast<llama_kv_cache*>(memory)) {
    wipe(*cache, sequence);
  } else if (auto* both = dynamic_cast<llama_kv_cache_iswa*>(memory)) {
    wipe(*both, sequence);
  } else if (auto* recurrent = dynamic_cast<llama_memory_recurrent*>(memory)) {
    wipe(*recurrent);
  } else if (auto* hybrid = dynamic_cast<llama_memory_hybrid*>(memory)) {
    wipe(*hybrid->get_mem_attn(), sequence);
    wipe(*hybrid->get_mem_recr());
  } else if (auto* windowed = dynamic_cast<llama_memory_hybrid_iswa*>(memory)) {
    wipe(*windowed->get_mem_attn(), sequence);
    wipe(*windowed->get_mem_recr());
  } else {
    return memory == nullptr;
  }
  return true;
}

}  // namespace tapline
