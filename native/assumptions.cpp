// All assumptions about llama.cpp that its headers can confirm. An incompatible llama.cpp fails to compile
// here, with the file of tapline that relies on it, instead of computing wrong numbers. `npm run
// verify:llama` checks assumptions that only the sources can confirm. Both: docs/contributing/upgrading.md.
//
// Members of server_slot and server_context_impl are missing, because no header declares them.
// engine/server_slots.cpp includes the source that does, and fails to compile without them.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// ggml's CPU backend: declarations of the functions that native/products defines.
#include "ggml-cpu/ggml-cpu-impl.h"
#include "ggml-cpu/llamafile/sgemm.h"
#include "ggml-cpu/ops.h"
#include "ggml-cpu/repack.h"
#include "ggml-cpu/vec.h"

#include "ggml-backend.h"
#include "llama-context.h"
#include "llama-ext.h"
#include "llama-kv-cache-dsa-iswa.h"
#include "llama-kv-cache-dsa.h"
#include "llama-kv-cache-iswa.h"
#include "llama-kv-cache-msa.h"
#include "llama-kv-cache.h"
#include "llama-memory-hybrid-idx.h"
#include "llama-memory-hybrid-iswa.h"
#include "llama-memory-hybrid.h"
#include "llama-memory-recurrent.h"
#include "llama-model.h"
#include "llama.h"
#include "model/tensor_map.h"
#include "products/products.h"
#include "server-context.h"
#include "server-queue.h"

namespace {

#define TAPLINE_SAME(type, expected, where) \
  static_assert(std::is_same_v<type, expected>, #type " is no longer " #expected ": " where)

// --- quantised blocks that native/products reads and writes ---

namespace ours = tapline::products;

#define TAPLINE_SAME_BLOCK(our, their) \
  static_assert(sizeof(ours::our) == sizeof(their), "the layout of " #their " has changed: native/products")
#define TAPLINE_SAME_FIELD(our, our_field, their, their_field)                    \
  static_assert(offsetof(ours::our, our_field) == offsetof(their, their_field) && \
                    sizeof(ours::our::our_field) == sizeof(their::their_field),   \
                "the layout of " #their "." #their_field " has changed: native/products")
TAPLINE_SAME_BLOCK(Q8_0, block_q8_0);
TAPLINE_SAME_FIELD(Q8_0, scale, block_q8_0, d);
TAPLINE_SAME_FIELD(Q8_0, values, block_q8_0, qs);
TAPLINE_SAME_BLOCK(Q4_1, block_q4_1);
TAPLINE_SAME_FIELD(Q4_1, scale, block_q4_1, data.data.d);
TAPLINE_SAME_FIELD(Q4_1, least, block_q4_1, data.data.m);
TAPLINE_SAME_FIELD(Q4_1, nibbles, block_q4_1, qs);
TAPLINE_SAME_BLOCK(Q5_0, block_q5_0);
TAPLINE_SAME_FIELD(Q5_0, scale, block_q5_0, d);
TAPLINE_SAME_FIELD(Q5_0, fifth, block_q5_0, qh);
TAPLINE_SAME_FIELD(Q5_0, nibbles, block_q5_0, qs);
TAPLINE_SAME_BLOCK(Q5_1, block_q5_1);
TAPLINE_SAME_FIELD(Q5_1, scale, block_q5_1, data.data.d);
TAPLINE_SAME_FIELD(Q5_1, least, block_q5_1, data.data.m);
TAPLINE_SAME_FIELD(Q5_1, fifth, block_q5_1, qh);
TAPLINE_SAME_FIELD(Q5_1, nibbles, block_q5_1, qs);
TAPLINE_SAME_BLOCK(Q8_1, block_q8_1);
TAPLINE_SAME_FIELD(Q8_1, scale, block_q8_1, data.data.d);
TAPLINE_SAME_FIELD(Q8_1, sum, block_q8_1, data.data.s);
TAPLINE_SAME_FIELD(Q8_1, values, block_q8_1, qs);
TAPLINE_SAME_BLOCK(Q8K, block_q8_K);
TAPLINE_SAME_FIELD(Q8K, scale, block_q8_K, d);
TAPLINE_SAME_FIELD(Q8K, values, block_q8_K, qs);
TAPLINE_SAME_FIELD(Q8K, sums, block_q8_K, bsums);
TAPLINE_SAME_BLOCK(Q4Kx8, block_q4_Kx8);
TAPLINE_SAME_FIELD(Q4Kx8, scale, block_q4_Kx8, d);
TAPLINE_SAME_FIELD(Q4Kx8, least, block_q4_Kx8, dmin);
TAPLINE_SAME_FIELD(Q4Kx8, groups, block_q4_Kx8, scales);
TAPLINE_SAME_FIELD(Q4Kx8, nibbles, block_q4_Kx8, qs);
TAPLINE_SAME(ggml_half, ours::Half, "native/products/products.h");

// --- ggml's functions that native/products defines ---

TAPLINE_SAME(decltype(llamafile_sgemm),
             bool(const ggml_compute_params*, int64_t, int64_t, int64_t, const void*, int64_t, const void*,
                  int64_t, void*, int64_t, int, int, int),
             "native/products/in_ggml.cpp");
TAPLINE_SAME(decltype(ggml_compute_forward_flash_attn_ext), void(const ggml_compute_params*, ggml_tensor*),
             "native/products/attention.cpp");
TAPLINE_SAME(decltype(ggml_gemv_q4_K_8x8_q8_K), void(int, float*, size_t, const void*, const void*, int, int),
             "native/products/packed_q4_k.cpp");
TAPLINE_SAME(decltype(ggml_vec_gelu_f32), void(int, float*, const float*), "native/products/exact_gelu.h");
TAPLINE_SAME(decltype(ggml_vec_gelu_quick_f32), void(int, float*, const float*),
             "native/products/exact_gelu.h");
TAPLINE_SAME(decltype(ggml_vec_geglu_f32), void(int, float*, const float*, const float*),
             "native/products/exact_gelu.h");
TAPLINE_SAME(decltype(ggml_vec_geglu_quick_f32), void(int, float*, const float*, const float*),
             "native/products/exact_gelu.h");
TAPLINE_SAME(decltype(ggml_compute_params::ith), int, "native/products/in_ggml.cpp");
TAPLINE_SAME(decltype(ggml_compute_params::nth), int, "native/products/in_ggml.cpp");
TAPLINE_SAME(decltype(ggml_compute_params::wdata), void*, "native/products/attention.cpp");
TAPLINE_SAME(decltype(ggml_compute_params::use_ref), bool, "native/products/in_ggml.cpp");

// --- a forward pass: batch and callback ---

TAPLINE_SAME(decltype(llama_decode), int32_t(llama_context*, llama_batch), "native/engine/server_slots.cpp");
TAPLINE_SAME(decltype(llama_batch::n_tokens), int32_t, "native/capture/row_map.cpp");
TAPLINE_SAME(decltype(llama_batch::token), llama_token*, "native/capture/row_map.cpp");
TAPLINE_SAME(decltype(llama_batch::embd), float*, "native/capture/row_map.cpp");
TAPLINE_SAME(decltype(llama_batch::pos), llama_pos*, "native/capture/row_map.cpp");
TAPLINE_SAME(decltype(llama_batch::seq_id), llama_seq_id**, "native/capture/row_map.cpp");
TAPLINE_SAME(decltype(llama_batch::logits), int8_t*, "native/capture/row_map.cpp");
static_assert(sizeof(llama_batch) == 7 * sizeof(void*),
              "llama_batch has a new member: native/capture/row_map.cpp");
TAPLINE_SAME(decltype(llama_graph_reserve), ggml_cgraph*(llama_context*, uint32_t, uint32_t, uint32_t),
             "native/capture/residual_stream.cpp");
TAPLINE_SAME(ggml_backend_sched_eval_callback, bool (*)(ggml_tensor*, bool, void*),
             "native/capture/block_tap.cpp");
TAPLINE_SAME(decltype(llama_cparams::cb_eval), ggml_backend_sched_eval_callback,
             "native/engine/eval_callback.h");
TAPLINE_SAME(decltype(llama_cparams::cb_eval_user_data), void*, "native/engine/eval_callback.h");
TAPLINE_SAME(decltype(&llama_context::get_cparams), const llama_cparams& (llama_context::*)() const,
             "native/engine/eval_callback.h");
TAPLINE_SAME(decltype(&llama_context::get_sched), ggml_backend_sched_t (llama_context::*)() const,
             "native/engine/eval_callback.h");
// tensor_map.h repeats this declaration to avoid including llama-model.h.
using TensorMap = const std::vector<std::pair<std::string, ggml_tensor*>>&(const llama_model*);
TAPLINE_SAME(decltype(llama_internal_get_tensor_map), TensorMap, "native/model/tensor_map.h");

// --- edits inside the graph ---

TAPLINE_SAME(decltype(&llm_graph_context::build_cvec),
             ggml_tensor* (llm_graph_context::*)(ggml_tensor*, int) const, "native/ends/block_end.cpp");
TAPLINE_SAME(decltype(&llama_adapter_cvec::apply_to),
             ggml_tensor* (llama_adapter_cvec::*)(ggml_context*, ggml_tensor*, int) const,
             "native/ends/block_end.cpp");
TAPLINE_SAME(decltype(llm_graph_context::cvec), const llama_adapter_cvec*, "native/ends/block_end.cpp");
TAPLINE_SAME(decltype(llm_graph_context::n_outputs), const int64_t, "native/armed/graph_build.cpp");
TAPLINE_SAME(decltype(llm_graph_context::res), llm_graph_result*, "native/armed/graph_build.cpp");
TAPLINE_SAME(decltype(llm_graph_result::inputs), std::vector<llm_graph_input_ptr>,
             "native/armed/graph_build.cpp");
TAPLINE_SAME(decltype(&llm_graph_input_i::set_input), void (llm_graph_input_i::*)(const llama_ubatch*),
             "native/armed/row_input.h");
TAPLINE_SAME(decltype(&llm_graph_input_i::can_reuse), bool (llm_graph_input_i::*)(const llm_graph_params&),
             "native/armed/row_input.h");
TAPLINE_SAME(decltype(llama_ubatch::pos), llama_pos*, "native/armed/graph_build.cpp");
TAPLINE_SAME(decltype(llama_ubatch::seq_id), llama_seq_id**, "native/armed/graph_build.cpp");
TAPLINE_SAME(decltype(llama_ubatch::output), int8_t*, "native/armed/graph_build.cpp");
TAPLINE_SAME(decltype(&llama_model::dev_layer), ggml_backend_dev_t (llama_model::*)(int) const,
             "native/armed/graph_proof.cpp");

// --- kinds of memory ---

// add() in slot_memory.cpp tries the kinds in order, so derived classes must come before their bases.
template <class Kind>
constexpr bool is_memory = std::is_base_of_v<llama_memory_i, Kind>;
template <class One, class Other>
constexpr bool related = std::is_base_of_v<One, Other> || std::is_base_of_v<Other, One>;
static_assert(is_memory<llama_kv_cache> && is_memory<llama_memory_recurrent> &&
                  is_memory<llama_kv_cache_iswa> && is_memory<llama_kv_cache_dsa> &&
                  is_memory<llama_kv_cache_dsa_iswa> && is_memory<llama_kv_cache_msa> &&
                  is_memory<llama_memory_hybrid> && is_memory<llama_memory_hybrid_iswa> &&
                  is_memory<llama_memory_hybrid_idx>,
              "a kind of memory is not derived from llama_memory_i: native/engine/slot_memory.cpp");
static_assert(!related<llama_kv_cache, llama_kv_cache_iswa> && !related<llama_kv_cache, llama_kv_cache_dsa> &&
                  !related<llama_kv_cache, llama_kv_cache_msa> &&
                  !related<llama_kv_cache, llama_kv_cache_dsa_iswa> &&
                  !related<llama_kv_cache_dsa, llama_kv_cache_dsa_iswa> &&
                  !related<llama_memory_hybrid, llama_memory_hybrid_iswa> &&
                  !std::is_base_of_v<llama_memory_hybrid_idx, llama_memory_hybrid>,
              "a kind of memory is derived from one that is tried first: native/engine/slot_memory.cpp");
TAPLINE_SAME(decltype(&llama_kv_cache::get_n_stream), uint32_t (llama_kv_cache::*)() const,
             "native/engine/slot_memory.cpp");
TAPLINE_SAME(decltype(llama_memory_recurrent::size), uint32_t, "native/engine/slot_memory.cpp");
TAPLINE_SAME(decltype(llama_memory_recurrent::n_rs_seq), uint32_t, "native/engine/slot_memory.cpp");
TAPLINE_SAME(decltype(llama_memory_recurrent::r_l), std::vector<ggml_tensor*>,
             "native/engine/slot_memory.cpp");
TAPLINE_SAME(decltype(llama_memory_recurrent::s_l), std::vector<ggml_tensor*>,
             "native/engine/slot_memory.cpp");
TAPLINE_SAME(decltype(llama_memory_recurrent::p_l), std::vector<ggml_tensor*>,
             "native/engine/slot_memory.cpp");

// --- private members that base/reveal.h exposes ---

template <typename Member, Member member>
struct Named {};
// native/armed/graph_proof.cpp: one per context
template struct Named<llama_adapter_cvec_ptr llama_context::*, &llama_context::cvec>;
using Buffers = std::vector<std::pair<ggml_context_ptr, ggml_backend_buffer_ptr>>;
// native/engine/slot_memory.cpp: the tensors of a cache
template struct Named<Buffers llama_kv_cache::*, &llama_kv_cache::ctxs_bufs>;
// native/engine/generation_loop.cpp: the function that the queue calls per iteration
template struct Named<std::function<void()> server_queue::*, &server_queue::callback_update_slots>;
// native/engine/server_slots.cpp: a macro adds a call after each of these
template struct Named<void (server_queue::*)(std::function<void()>&&), &server_queue::yield_to_queue>;
// native/engine/server_slots.cpp: the scheduler
TAPLINE_SAME(decltype(server_context::impl), std::unique_ptr<server_context_impl>,
             "native/engine/server_slots.cpp");

// --- numbers ---

static_assert(LLAMA_TOKEN_NULL == -1, "LLAMA_TOKEN_NULL is no longer -1: native/engine/prepare.cpp");
static_assert(LLAMA_DEFAULT_SEED == 0xFFFFFFFF, "LLAMA_DEFAULT_SEED has changed: native/engine/prepare.cpp");
// These are indices of kPoolings in options.cpp.
static_assert(LLAMA_POOLING_TYPE_UNSPECIFIED == -1 && LLAMA_POOLING_TYPE_NONE == 0 &&
                  LLAMA_POOLING_TYPE_MEAN == 1 && LLAMA_POOLING_TYPE_CLS == 2 &&
                  LLAMA_POOLING_TYPE_LAST == 3 && LLAMA_POOLING_TYPE_RANK == 4,
              "pooling types are numbered differently: native/engine/options.cpp");

}  // namespace
