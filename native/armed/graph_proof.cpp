#include <algorithm>

#include "armed/graph_edits.h"
#include "base/error.h"
#include "base/reveal.h"
#include "ggml-cpp.h"
#include "llama-context.h"
#include "llama-ext.h"
#include "llama-model.h"

namespace tapline {

// Not in the anonymous namespace: an explicit instantiation belongs to its template's namespace.
struct ControlVectorKey {
  using Member = llama_adapter_cvec_ptr llama_context::*;
  friend Member reveal(ControlVectorKey);
};
template struct Reveal<ControlVectorKey, &llama_context::cvec>;

namespace {

const llama_adapter_cvec* control_vector_of(llama_context* ctx) {
  return (ctx->*reveal(ControlVectorKey())).get();
}

}  // namespace

GraphEdits::GraphEdits(llama_context* ctx, const ResidualStream& stream)
    : ctx_(ctx),
      n_embd_(llama_model_n_embd(llama_get_model(ctx))),
      row_limit_(llama_n_batch(ctx)),
      micro_limit_(int64_t(llama_n_ubatch(ctx)) + llama_n_seq_max(ctx)) {
  const llama_model* model = llama_get_model(ctx);
  ggml_backend_sched_t sched = ctx->get_sched();
  layers_.resize(stream.blocks.size());
  for (size_t il = 0; il < layers_.size(); ++il) {
    Layer& layer = layers_[il];
    ggml_backend_dev_t device = model->dev_layer(static_cast<int>(il));
    const auto is_on = [device](const Device& one) { return ggml_backend_get_device(one.backend) == device; };
    auto found = std::find_if(devices_.begin(), devices_.end(), is_on);
    for (int i = 0; found == devices_.end() && i < ggml_backend_sched_get_n_backends(sched); ++i) {
      ggml_backend_t backend = ggml_backend_sched_get_backend(sched, i);
      if (ggml_backend_get_device(backend) != device) continue;
      devices_.emplace_back().backend = backend;
      found = devices_.end() - 1;
    }
    if (found == devices_.end() || !supports(found->backend)) continue;
    layer.device = static_cast<size_t>(found - devices_.begin());
    layer.dots.emplace(found->backend, n_embd_);
  }
  set_block_end(control_vector_of(ctx_), this);
  try {
    prove(stream);
  } catch (...) {
    set_block_end(control_vector_of(ctx_), nullptr);
    throw;
  }
}

GraphEdits::~GraphEdits() {
  set_block_end(control_vector_of(ctx_), nullptr);
}

bool GraphEdits::chosen(const llama_context* ctx, const std::string& edits) {
  if (!edits.empty()) return edits == "graph";
  const llama_model* model = llama_get_model(ctx);
  for (int il = 0; il < llama_model_n_layer(model); ++il) {
    if (ggml_backend_dev_type(model->dev_layer(il)) != GGML_BACKEND_DEVICE_TYPE_CPU) return true;
  }
  return false;
}

bool GraphEdits::reads(Place place) const {
  const Place at = place.computed_at();
  return at.point == Point::kBlockOut && layers_[static_cast<size_t>(at.layer)].proven;
}

/// Whether a device computes every operation of an edit, and the writing of results. The scheduler aborts the
/// process if a device cannot write a tensor in its own memory.
bool GraphEdits::supports(ggml_backend_t backend) const {
  LayerEdits edits(backend, n_embd_);
  edits.arm(LayerEdits::kEveryPart, 1);
  constexpr size_t kNodes = 128;
  ggml_context_ptr ctx(ggml_init({kNodes * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true}));
  ggml_tensor* const output = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, n_embd_, 2);
  ggml_tensor* const rows = ggml_new_tensor_1d(ctx.get(), GGML_TYPE_I32, 2);
  ggml_tensor* const results = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, 3, 4);
  ggml_cgraph* const graph = ggml_new_graph(ctx.get());
  ggml_tensor* lengths = nullptr;
  ggml_tensor* changes = nullptr;
  ggml_build_forward_expand(graph, edits.extend(ctx.get(), output, rows, &lengths, &changes));
  ggml_tensor* const column = ggml_view_2d(ctx.get(), results, 1, 4, results->nb[1], sizeof(float));
  for (ggml_tensor* values : {lengths, changes})
    ggml_build_forward_expand(graph, ggml_set_rows(ctx.get(), column, values, rows));
  ggml_tensor* const copies = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, n_embd_, 4);
  ggml_build_forward_expand(graph, ggml_set_rows(ctx.get(), copies, output, rows));
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    if (!ggml_backend_supports_op(backend, ggml_graph_node(graph, i))) return false;
  }
  return true;
}

/// Builds a graph that adds vectors in every layer. A layer is proven if the tensor that was added last is
/// its block output, and nothing else reads the one before.
void GraphEdits::prove(const ResidualStream& stream) {
  ggml_cgraph* graph = reserve();
  if (graph == nullptr)
    throw Error(ErrorCode::kOutOfMemory, "There is not enough memory for compute graphs.");
  plain_nodes_ = ggml_graph_n_nodes(graph);
  std::map<int, Needs> every;
  for (size_t il = 0; il < layers_.size(); ++il) {
    if (layers_[il].device)
      every[static_cast<int>(il)].stage(0).first = LayerEdits::kLengths | LayerEdits::kAdd;
  }
  std::vector<Seen> seen(layers_.size());
  try {
    graph = nullptr;  // and no layer is proven
    if (has_room(every)) {
      arm_layers(every);
      armed_ = true;
      proof_ = &seen;
      graph = reserve();
    }
  } catch (const Error&) {
    // Out of memory for tables.
  }
  proof_ = nullptr;
  if (graph != nullptr) {
    const GraphView view(graph);
    for (size_t il = 0; il < layers_.size(); ++il)
      layers_[il].proven = proven(view, seen[il], stream.blocks[il]);
  }
  disarm();
  // Tables that no request has needed yet take no memory.
  for (Layer& layer : layers_) layer.stages.clear();
  // The next decode builds its graph again.
  if (reserve() == nullptr)
    throw Error(ErrorCode::kOutOfMemory, "There is not enough memory for compute graphs.");
}

bool GraphEdits::proven(const GraphView& graph, const Seen& seen, const std::string& name) {
  const int index = graph.find(name);
  if (seen.times != 1 || seen.before == seen.after || index < 0 || graph.node(index) != seen.after)
    return false;
  bool alone = true;
  for (int i = 0; i < graph.size(); ++i) {
    if (seen.added.count(graph.node(i)) > 0) continue;
    graph.each_source(i, [&](const ggml_tensor* source) {
      // Between devices, a copy with its name may be read.
      alone = alone && source != seen.before && GraphView::original_name(source) != seen.before->name;
    });
  }
  return alone;
}

/// Notes the nodes that an extension has added: those between it and the block's own output.
void GraphEdits::note_added(const ggml_tensor* node, Seen& seen) {
  if (node == nullptr || node == seen.before || node->op == GGML_OP_NONE) return;
  if (!seen.added.insert(node).second) return;
  for (const ggml_tensor* source : node->src) note_added(source, seen);
}

ggml_cgraph* GraphEdits::reserve() {
  llama_synchronize(ctx_);
  const llama_cparams& params = ctx_->get_cparams();
  const uint32_t n_tokens = std::min(params.n_ctx, params.n_ubatch);
  // Sequences that share a cache are computed as one, as llama.cpp reserves for them.
  const uint32_t n_seqs = params.kv_unified ? 1 : llama_n_seq_max(ctx_);
  ggml_cgraph* graph = llama_graph_reserve(ctx_, n_tokens, n_seqs, std::min(n_tokens, params.n_outputs_max));
  if (graph != nullptr) node_limit_ = ggml_graph_size(graph);
  return graph;
}

}  // namespace tapline
