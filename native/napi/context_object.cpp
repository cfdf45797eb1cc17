#include <utility>

#include "napi/experiments/experiment.h"
#include "napi/handle.h"
#include "napi/objects.h"

namespace tapline {

namespace {

/// JavaScript's handle of a context: its experiments, each from its own file in experiments/.
struct ContextKind : HandleKind {
  using Held = Passes;
  static constexpr napi_type_tag kTag = {0x7461706c696e6502, 0x636f6e7465787401};
  static constexpr const char* kWhat = "context";
  static constexpr const char* kOrigin = "A Context comes from Model.createContext().";
  static constexpr auto kConstructor = &AddonData::context_class;

  static Napi::Value describe(const Passes& passes, Napi::Env env) {
    const ResidualStream& stream = passes.stream();
    const BlockPoints& points = stream.points;
    size_t at = 0;
    const auto point = [&](const BlockPoints::Found& found) {
      std::vector<int32_t> layers, widths, heads, experts;
      for (size_t layer = 0; layer < found.sites.size(); ++layer) {
        const Site& site = found.sites[layer];
        if (site.node < 0) continue;
        layers.push_back(static_cast<int32_t>(layer));
        widths.push_back(site.width);
        heads.push_back(site.heads);
        experts.push_back(site.experts);
      }
      return object_of(env, "point", kPointNames[at++], "supported", found.supported, "reason", found.reason,
                       "layers", layers, "widths", widths, "heads", heads, "experts", experts);
    };
    return object_of(env, "nCtx", passes.n_ctx(), "nBatch", passes.n_batch(), "causal", passes.causal(),
                     "supported", stream.supported, "reason", stream.reason, "sidePath", stream.side_path,
                     "lensSupported", stream.lens.supported, "lensReason", stream.lens.reason, "tensorNames",
                     stream.blocks, "points", array_of(env, points.found, point), "parallel", points.parallel,
                     "normed", points.normed, "scaled", points.scaled);
  }
};

using ContextObject = HandleObject<ContextKind>;

Napi::Value reset(const std::shared_ptr<Passes>& passes, const Call& call) {
  return start(call, [passes] { passes->reset(); });
}

}  // namespace

void define_context(Napi::Env env) {
  ContextObject::define_class(
      env, "Context",
      {
          ContextObject::while_open<experiments::advance>("advance"),
          ContextObject::while_open<experiments::attribution>("attribution"),
          ContextObject::while_open<experiments::attribution_graph>("attributionGraph"),
          ContextObject::while_open<experiments::transcoder_graph>("transcoderGraph"),
          ContextObject::while_open<experiments::features>("features"),
          ContextObject::while_open<experiments::forward>("forward"),
          ContextObject::while_open<experiments::sweep>("sweep"),
          ContextObject::while_open<experiments::patch_sweep>("patchSweep"),
          ContextObject::while_open<experiments::embedding_input>("embeddingInput"),
          ContextObject::while_open<experiments::explain>("explain"),
          ContextObject::while_open<experiments::logit_direction>("logitDirection"),
          ContextObject::while_open<experiments::lens_logits>("lensLogits"),
          ContextObject::while_open<experiments::read_lens>("readLens"),
          ContextObject::while_open<reset>("reset"),
      });
}

Napi::Value create_context(const std::shared_ptr<Model>& model, const Call& call) {
  ContextOptions options;
  read_fields(call.options, "nCtx", options.n_ctx, "nBatch", options.n_batch, "maxSequences",
              options.n_seq_max, "threads", options.n_threads, "keepAttention", options.keep_attention,
              "edits", options.edits);
  return start(
      call, [model, options] { return std::make_shared<Passes>(model, options); }, ContextObject::wrap);
}

}  // namespace tapline
