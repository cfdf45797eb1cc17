#include "engine/slot_memory.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/reveal.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "llama-kv-cache-dsa-iswa.h"
#include "llama-kv-cache-dsa.h"
#include "llama-kv-cache-iswa.h"
#include "llama-kv-cache-msa.h"
#include "llama-kv-cache.h"
#include "llama-memory-hybrid-idx.h"
#include "llama-memory-hybrid-iswa.h"
#include "llama-memory-hybrid.h"
#include "llama-memory-recurrent.h"

namespace tapline {

// Not in the anonymous namespace: an explicit instantiation belongs to its template's namespace. The getters
// of keys and values crash where a cache has no values.
struct CacheTensorsKey {
  using Member = std::vector<std::pair<ggml_context_ptr, ggml_backend_buffer_ptr>> llama_kv_cache::*;
  friend Member reveal(CacheTensorsKey);
};
template struct Reveal<CacheTensorsKey, &llama_kv_cache::ctxs_bufs>;

namespace {

/// The parts of a memory.
struct Parts {
  std::vector<llama_kv_cache*> caches;
  std::vector<llama_memory_recurrent*> states;
  bool known = true;  // all of it
};

void add(llama_memory_i* memory, Parts& parts);

template <class... Memories>
void add_all(Parts& parts, Memories*... memories) {
  (add(memories, parts), ...);
}

void add(llama_memory_i* memory, Parts& parts) {
  // Derived kinds must come before their bases.
  if (memory == nullptr) return;
  if (auto* cache = dynamic_cast<llama_kv_cache*>(memory)) {
    parts.caches.push_back(cache);
  } else if (auto* state = dynamic_cast<llama_memory_recurrent*>(memory)) {
    parts.states.push_back(state);
  } else if (auto* windowed = dynamic_cast<llama_kv_cache_iswa*>(memory)) {
    add_all(parts, windowed->get_base(), windowed->get_swa());
  } else if (auto* indexed = dynamic_cast<llama_kv_cache_dsa*>(memory)) {
    add_all(parts, indexed->get_mla(), indexed->get_lid());
  } else if (auto* both = dynamic_cast<llama_kv_cache_dsa_iswa*>(memory)) {
    add_all(parts, both->get_dsa(), both->get_swa());
  } else if (auto* sparse = dynamic_cast<llama_kv_cache_msa*>(memory)) {
    add_all(parts, sparse->get_base(), sparse->get_idx());
  } else if (auto* hybrid_indexed = dynamic_cast<llama_memory_hybrid_idx*>(memory)) {
    add_all(parts, hybrid_indexed->get_mem_attn(), hybrid_indexed->get_mem_recr(),
            hybrid_indexed->get_mem_idx());
  } else if (auto* hybrid = dynamic_cast<llama_memory_hybrid*>(memory)) {
    add_all(parts, hybrid->get_mem_attn(), hybrid->get_mem_recr());
  } else if (auto* hybrid_windowed = dynamic_cast<llama_memory_hybrid_iswa*>(memory)) {
    add_all(parts, hybrid_windowed->get_mem_attn(), hybrid_windowed->get_mem_recr());
  } else {
    parts.known = false;
  }
}

Parts parts_of(llama_memory_t memory) {
  Parts parts;
  add(memory, parts);
  return parts;
}

/// The last dimension of a cache's tensors counts streams.
void wipe(llama_kv_cache& cache, llama_seq_id sequence) {
  const size_t streams = cache.get_n_stream();
  const size_t stream = streams > 1 ? static_cast<size_t>(sequence) : 0;
  for (const auto& [context, buffer] : cache.*reveal(CacheTensorsKey())) {
    for (ggml_tensor* tensor = ggml_get_first_tensor(context.get()); tensor != nullptr;
         tensor = ggml_get_next_tensor(context.get(), tensor)) {
      if (tensor->view_src != nullptr) continue;
      const size_t bytes = ggml_nbytes(tensor) / streams;
      ggml_backend_tensor_memset(tensor, 0, stream * bytes, bytes);
    }
  }
}

/// Wipes the unused cells.
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

}  // namespace

bool can_wipe_sequence(llama_memory_t memory) {
  return parts_of(memory).known;
}

void wipe_sequence(llama_memory_t memory, llama_seq_id sequence) {
  const Parts parts = parts_of(memory);
  if (!parts.known) throw Error(ErrorCode::kInternal, "A slot's kind of memory cannot be wiped.");
  for (llama_kv_cache* cache : parts.caches) wipe(*cache, sequence);
  for (llama_memory_recurrent* state : parts.states) wipe(*state);
}

}  // namespace tapline
