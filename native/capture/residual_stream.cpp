#include "capture/residual_stream.h"

#include <algorithm>
#include <cstring>

#include "capture/graph_view.h"
#include "llama-cpp.h"
#include "llama-ext.h"

namespace tapline {

namespace {

/// The leaves through which a batch's tokens enter a graph.
const char* const kTokenLeaves[] = {"inp_tokens", "inp_embd"};

/// The names of block outputs in different architectures, most common first.
const char* const kBlockNames[] = {"l_out-", "nemotron_h_block_out-", "ffn_residual-"};
/// mimo2's name for the output of its last block since llama.cpp 0.6.0.
const char* const kLastBlockName = "h_nextn";

/// Architectures without a single residual stream, known without their graph.
struct Refusal {
  const char* architecture;
  const char* why;
};
const Refusal kRefused[] = {
    {"deepseek4", "carries several residual streams (hyper-connections)"},
    {"hy_v4", "carries several residual streams (hyper-connections)"},
    {"qwen4exp", "carries several residual streams (hyper-connections)"},
    {"gemma3n", "carries several residual streams (alternating updates)"},
    {"kimi-k3", "mixes the outputs of several earlier blocks into each block (attention residuals)"},
};

/// Architectures in which later blocks also have inputs other than the block output, by design. Their block
/// names were read in llama.cpp's source. `anywhere` is false if the side path does not depend on the first
/// block's output, so that a path around any later block is still rejected.
struct SidePath {
  const char* architecture;
  bool anywhere;
  const char* what;
};
const SidePath kSidePaths[] = {
    {"talkie", false, "the token embedding is added again in every block"},
    {"gemma4", false, "per-layer token embeddings enter every block"},
    {"rwkv7", false, "the first block's values enter every block"},
    {"arwkv7", false, "the first block's values enter every block"},
    {"hrm_text", true, "the token embedding and the slow state are added again in every cycle"},
};

/// Architectures whose graph in llama.cpp is wrong for several sequences in one micro-batch: plamo2's mamba
/// blocks mix up tokens of sequences, and store states at a wrong offset; minimax-01 multiplies in four
/// dimensions, for which repacked weights (repack.cpp) abort the process.
const char* const kOneSequenceAtATime[] = {"plamo2", "minimax-01"};

bool is_token_leaf(const ggml_tensor* t) {
  const std::string name = GraphView::original_name(t);
  return std::any_of(std::begin(kTokenLeaves), std::end(kTokenLeaves),
                     [&](const char* leaf) { return name == leaf; });
}

/// The number of rows of a tensor with rows of n_embd, or 0 for any other shape.
int64_t rows_of(const ggml_tensor* t, int n_embd) {
  if (t->type != GGML_TYPE_F32 || t->ne[0] != n_embd || !ggml_is_contiguous(t)) return 0;
  return ggml_nelements(t) / n_embd;
}

struct Bypass {
  int from = -1;  // node, or -1 for a token leaf
  std::string from_name;
  std::string to_name;
};

/// All edges by which the logits depend on tokens without going through `block`.
std::vector<Bypass> bypasses(const GraphView& graph, int block, const std::vector<bool>& from_tokens,
                             const std::vector<bool>& to_end) {
  std::vector<Bypass> found;
  const std::vector<bool> after = graph.reached_from(block);
  for (int i = block + 1; i < graph.size(); ++i) {
    if (!after[static_cast<size_t>(i)] || !to_end[static_cast<size_t>(i)]) continue;
    graph.each_source(i, [&](const ggml_tensor* source) {
      const int index = graph.index_of(source);
      const bool around = index < 0
                              ? is_token_leaf(source)
                              : !after[static_cast<size_t>(index)] && from_tokens[static_cast<size_t>(index)];
      if (around) found.push_back({index, source->name, graph.node(i)->name});
    });
  }
  return found;
}

/// Whether the graph drops rows without outputs.
bool picks_rows(const GraphView& graph, const std::vector<bool>& to_end) {
  for (int i = 0; i < graph.size(); ++i) {
    if (graph.node(i)->op != GGML_OP_GET_ROWS || !to_end[static_cast<size_t>(i)]) continue;
    const ggml_tensor* rows = graph.node(i)->src[1];
    if (rows != nullptr && GraphView::original_name(rows) == "out_ids") return true;
  }
  return false;
}

/// The node of the logits, or of the embedding if a model has no output head.
int find_end(const GraphView& graph) {
  for (const char* name : {"result_output", "result_embd_pooled", "result_embd", "result_norm"}) {
    const int index = graph.find(name);
    if (index >= 0) return index;
  }
  return graph.size() - 1;
}

ResidualStream refused(const std::string& reason) {
  ResidualStream stream;
  stream.reason = reason;
  stream.lens.reason = reason;
  for (BlockPoints::Found& found : stream.points.found) found.reason = reason;
  return stream;
}

/// A second context of a model, without weights and only on the host: its graph is the same without the
/// copies between devices.
class Twin {
 public:
  Twin(const Model& model, llama_context_params params) {
    ggml_backend_dev_t none[] = {nullptr};
    llama_model_params loading = llama_model_default_params();
    loading.devices = none;
    loading.n_gpu_layers = 0;
    loading.no_alloc = true;
    loading.load_mode = LLAMA_LOAD_MODE_NONE;
    model_.reset(llama_model_load_from_file(model.info().path.c_str(), loading));
    if (!model_) return;
    params.cb_eval = nullptr;
    params.abort_callback = nullptr;
    context_.reset(llama_init_from_model(model_.get(), params));
  }
  llama_context* context() const { return context_.get(); }

 private:
  llama_model_ptr model_;
  llama_context_ptr context_;  // freed first
};

ResidualStream describe(const GraphView& view, uint32_t n_tokens, const Model& model);

/// Keeps points of a graph without copies between devices only if their names are also in the real graph.
void keep_places_of(const GraphView& real, const std::string& subject, BlockPoints& points) {
  for (size_t i = 0; i < kPointCount; ++i) {
    BlockPoints::Found& found = points.found[i];
    bool there = true;
    for (Site& site : found.sites) {
      if (site.node < 0) continue;
      const int anchor = real.find(site.anchor);
      there = there && anchor >= 0;
      site.node = anchor + site.offset;
    }
    if (!found.supported || there) continue;
    found = {};
    found.reason = subject + "is spread over devices in a way that hides its " + kPointNames[i] + ".";
  }
}

}  // namespace

ResidualStream find_residual_stream(llama_context* ctx, const llama_context_params& params,
                                    const Model& model) {
  const ModelInfo& info = model.info();
  const std::string subject = "The architecture '" + info.architecture + "' ";
  for (const Refusal& entry : kRefused) {
    if (info.architecture == entry.architecture) {
      return refused(subject + entry.why + ", so it has no single block output to capture.");
    }
  }
  if (info.has_encoder) {
    return refused(subject + "has an encoder; only decoders can be captured.");
  }
  // The size with which llama.cpp itself reserves its graphs; some architectures assert on odd ones.
  const uint32_t n_tokens = std::min(llama_n_ubatch(ctx), llama_n_ctx(ctx));
  ggml_cgraph* graph = llama_graph_reserve(ctx, n_tokens, 1, n_tokens);
  if (graph == nullptr) return refused("The compute graph of this model could not be built.");
  const GraphView view(graph);
  if (view.copies_known()) return describe(view, n_tokens, model);
  // Copies of unnamed tensors between devices cannot be distinguished, so the same graph without them is
  // used.
  const Twin twin(model, params);
  ggml_cgraph* plain =
      twin.context() == nullptr ? nullptr : llama_graph_reserve(twin.context(), n_tokens, 1, n_tokens);
  if (plain == nullptr)
    return refused(subject + "is spread over devices in a way that hides where its block outputs go.");
  ResidualStream stream = describe(GraphView(plain), n_tokens, model);
  // The tap will run on the real graph.
  const bool there = std::all_of(stream.blocks.begin(), stream.blocks.end(),
                                 [&](const std::string& name) { return view.find(name) >= 0; });
  if (!there) return refused(subject + "is spread over devices in a way that hides its block outputs.");
  stream.first_node = view.node(0)->name;
  keep_places_of(view, subject, stream.points);
  const bool lasting =
      std::all_of(stream.lens.steps.begin(), stream.lens.steps.end(),
                  [&](const LensStep& step) { return step.weight == nullptr || model.owns(step.weight); });
  if (!lasting) {
    stream.lens = {};
    stream.lens.reason = "The output head is spread over devices in a way that hides its weights.";
  }
  return stream;
}

namespace {

/// Finds the block outputs of `model` in a graph of `n_tokens` tokens, all of them outputs.
ResidualStream describe(const GraphView& view, uint32_t n_tokens, const Model& model) {
  const ModelInfo& info = model.info();
  const std::string subject = "The architecture '" + info.architecture + "' ";
  const SidePath* side = nullptr;
  for (const SidePath& entry : kSidePaths) {
    if (info.architecture == entry.architecture) side = &entry;
  }
  const int end = find_end(view);
  const std::vector<bool> from_tokens = view.reached_from_leaves(is_token_leaf);
  const std::vector<bool> to_end = view.reaching(end);

  ResidualStream stream;
  stream.first_node = view.node(0)->name;
  int first = -1;
  int last = -1;
  std::vector<int> outputs;
  for (int layer = 0; layer < info.n_layer; ++layer) {
    int found = -1;
    std::string why = "no tensor with that name holds one vector per token";
    std::vector<std::string> names;
    for (const char* prefix : kBlockNames) names.push_back(prefix + std::to_string(layer));
    if (layer + 1 == info.n_layer) names.emplace_back(kLastBlockName);
    for (const std::string& name : names) {
      const int index = view.find(name);
      if (index <= last || rows_of(view.node(index), info.n_embd) != n_tokens ||
          !to_end[static_cast<size_t>(index)]) {
        continue;
      }
      const std::vector<bool> after_first = view.reached_from(first < 0 ? index : first);
      const std::vector<Bypass> around = bypasses(view, index, from_tokens, to_end);
      const auto forbidden = std::find_if(around.begin(), around.end(), [&](const Bypass& edge) {
        return side == nullptr ||
               (!side->anywhere && edge.from >= 0 && after_first[static_cast<size_t>(edge.from)]);
      });
      if (forbidden == around.end()) {
        found = index;
        break;
      }
      why = "'" + forbidden->from_name + "' reaches '" + forbidden->to_name + "' past it";
    }
    if (found < 0) {
      return refused(subject + "has no proven output for block " + std::to_string(layer) + ": " + why + ".");
    }
    if (first < 0) first = found;
    last = found;
    outputs.push_back(found);
    stream.blocks.push_back(view.node(found)->name);
  }
  if (last < 0) return refused(subject + "has no blocks.");
  stream.supported = true;
  stream.points = find_block_points(view, outputs, info.n_embd, subject, is_token_leaf);
  stream.attention_paths = read_attention_paths(view, model, stream.points, n_tokens, subject);
  stream.mlp_paths = read_mlp_paths(view, model, stream.points, n_tokens, subject);
  stream.ffn_inputs = read_ffn_input_paths(view, model, stream.points, n_tokens, subject);
  if (side != nullptr) stream.side_path = side->what;
  stream.heads_every_row = !picks_rows(view, to_end);
  stream.packs_sequences =
      std::none_of(std::begin(kOneSequenceAtATime), std::end(kOneSequenceAtATime),
                   [&](const char* architecture) { return info.architecture == architecture; });
  const bool has_head = view.node(end)->ne[0] == info.n_vocab;
  stream.lens = read_lens_recipe(view, model, last, has_head ? end : -1);
  return stream;
}

}  // namespace

}  // namespace tapline
