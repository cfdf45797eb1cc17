#include "napi/context_object.h"

#include <utility>

namespace tapline {

namespace {

struct CreateContext {
  std::shared_ptr<Model> model;
  ContextOptions options;
  std::shared_ptr<Passes> passes;

  void execute(const CancelToken&) { passes = std::make_shared<Passes>(model, options); }
  Napi::Value result(Napi::Env env) { return ContextObject::wrap(env, std::move(passes)); }
};

struct Forget {
  std::shared_ptr<Passes> passes;

  void execute(const CancelToken&) { passes->reset(); }
  Napi::Value result(Napi::Env env) { return env.Undefined(); }
};

Napi::Object describe(const Passes& passes, Napi::Env env) {
  const ResidualStream& stream = passes.stream();
  const BlockPoints& points = stream.points;
  const auto point = [&](size_t i) {
    std::vector<int32_t> layers;
    std::vector<int32_t> widths;
    std::vector<int32_t> heads;
    std::vector<int32_t> experts;
    for (size_t layer = 0; layer < points.found[i].sites.size(); ++layer) {
      const Site& site = points.found[i].sites[layer];
      if (site.node < 0) continue;
      layers.push_back(static_cast<int32_t>(layer));
      widths.push_back(site.width);
      heads.push_back(site.heads);
      experts.push_back(site.experts);
    }
    return object_of(env, "point", kPointNames[i], "supported", points.found[i].supported, "reason",
                     points.found[i].reason, "layers", to_js(env, layers), "widths", to_js(env, widths),
                     "heads", to_js(env, heads), "experts", to_js(env, experts));
  };
  return object_of(env, "nCtx", passes.n_ctx(), "nBatch", passes.n_batch(), "causal", passes.causal(),
                   "supported", stream.supported, "reason", stream.reason, "sidePath", stream.side_path,
                   "lensSupported", stream.lens.supported, "lensReason", stream.lens.reason, "tensorNames",
                   to_js(env, stream.blocks), "points", array_of(env, kPointCount, point), "parallel",
                   points.parallel, "normed", points.normed, "scaled", points.scaled);
}

}  // namespace

void ContextObject::define(Napi::Env env) {
  define_class(env, "Context",
               {
                   while_open<&ContextObject::start<experiments::advance>>("advance"),
                   while_open<&ContextObject::start<experiments::features>>("features"),
                   while_open<&ContextObject::start<experiments::sweep>>("sweep"),
                   while_open<&ContextObject::start<experiments::patch_sweep>>("patchSweep"),
                   while_open<&ContextObject::start<experiments::embedding_input>>("embeddingInput"),
                   while_open<&ContextObject::start<experiments::explain>>("explain"),
                   while_open<&ContextObject::start<experiments::logit_direction>>("logitDirection"),
                   while_open<&ContextObject::start<experiments::lens_logits>>("lensLogits"),
                   while_open<&ContextObject::start<experiments::read_lens>>("readLens"),
                   while_open<&ContextObject::reset>("reset"),
                   closing(),
               });
}

ContextObject::ContextObject(const Napi::CallbackInfo& info) : HandleObject(info) {
  set_info(info, describe);
}

Napi::Value ContextObject::create(Napi::Env env, std::shared_ptr<Model> model, const Napi::Object& object) {
  CreateContext operation{std::move(model), {}, {}};
  operation.options.n_ctx = static_cast<uint32_t>(int_field(object, "nCtx", 512));
  operation.options.n_batch = static_cast<uint32_t>(int_field(object, "nBatch", 0));
  operation.options.n_seq_max = static_cast<uint32_t>(int_field(object, "maxSequences", 1));
  operation.options.n_threads = int_field(object, "threads", 0);
  operation.options.keep_attention = bool_field(object, "keepAttention", false);
  return run_async(env, std::move(operation));
}

template <Experiment* experiment>
Napi::Value ContextObject::start(const Napi::CallbackInfo& info) {
  return experiment({info.Env(), held_, options_of(info)});
}

Napi::Value ContextObject::reset(const Napi::CallbackInfo& info) {
  return run_async(info.Env(), Forget{held_});
}

}  // namespace tapline
