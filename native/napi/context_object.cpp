#include "napi/context_object.h"

#include <algorithm>
#include <array>
#include <utility>

#include "napi/args.h"
#include "napi/cancel_object.h"
#include "napi/edit_args.h"
#include "napi/results.h"

namespace tapline {

namespace {

Napi::Object top_to_js(Napi::Env env, const TopTokens& top) {
  Napi::Object out = Napi::Object::New(env);
  out.Set("k", top.k);
  out.Set("tokenIds", to_js(env, top.ids));
  out.Set("probabilities", to_js(env, top.probabilities));
  if (!top.target_ranks.empty()) {
    out.Set("targetProbabilities", to_js(env, top.target_probabilities));
    out.Set("targetRanks", to_js(env, top.target_ranks));
  }
  return out;
}

/// Points by their names; where none are named, the block output.
std::vector<Point> point_list(const Napi::Value& value) {
  std::vector<Point> points;
  for (const std::string& name : string_list(value, "points")) {
    const auto found = std::find(kPointNames.begin(), kPointNames.end(), name);
    if (found == kPointNames.end()) wrong_type("points", "a list of names that are known");
    points.push_back(static_cast<Point>(found - kPointNames.begin()));
  }
  if (absent(value)) points.push_back(Point::kBlockOut);
  return points;
}

struct CreateContext {
  std::shared_ptr<Model> model;
  ContextOptions options;
  std::shared_ptr<Passes> context;

  void execute(const CancelToken&) { context = std::make_shared<Passes>(model, options); }
  Napi::Value result(Napi::Env env) { return ContextObject::wrap(env, std::move(context)); }
};

struct Advance {
  std::shared_ptr<Passes> context;
  AdvanceRequest request;
  AdvanceResult outcome;

  void execute(const CancelToken& cancel) { outcome = context->advance(request, cancel); }
  Napi::Value result(Napi::Env env) {
    Napi::Object out = Napi::Object::New(env);
    out.Set("layers", array_of(env, outcome.layers.size(), [&](size_t i) {
              LayerStates& layer = outcome.layers[i];
              Napi::Object entry = Napi::Object::New(env);
              entry.Set("layer", layer.layer);
              entry.Set("point", name_of(layer.point));
              entry.Set("rows", static_cast<double>(layer.rows));
              entry.Set("width", static_cast<double>(layer.width));
              entry.Set("norms", to_js(env, layer.norms));
              if (!layer.states.empty()) entry.Set("states", hand_over(env, std::move(layer.states)));
              if (layer.lens.k > 0) entry.Set("lens", top_to_js(env, layer.lens));
              return entry;
            }));
    if (!outcome.attention.empty()) {
      out.Set("attention", array_of(env, outcome.attention.size(), [&](size_t i) {
                LayerAttention& layer = outcome.attention[i];
                Napi::Object entry = Napi::Object::New(env);
                entry.Set("layer", layer.layer);
                entry.Set("heads", to_js(env, layer.heads));
                entry.Set("weights", hand_over(env, std::move(layer.weights)));
                entry.Set("apart", layer.apart);
                return entry;
              }));
    }
    if (!outcome.routing.empty()) {
      out.Set("routing", array_of(env, outcome.routing.size(), [&](size_t i) {
                LayerRouting& layer = outcome.routing[i];
                Napi::Object entry = Napi::Object::New(env);
                entry.Set("layer", layer.layer);
                entry.Set("experts", layer.experts);
                entry.Set("used", layer.used);
                entry.Set("chosen", to_js(env, layer.chosen));
                entry.Set("weights", to_js(env, layer.weights));
                return entry;
              }));
    }
    if (outcome.next.k > 0) out.Set("next", top_to_js(env, outcome.next));
    if (!outcome.logits.empty()) out.Set("logits", to_js(env, outcome.logits));
    if (!outcome.effects.empty()) out.Set("effects", effects_to_js(env, outcome.effects));
    if (!outcome.log_probabilities.empty()) {
      out.Set("logProbabilities", to_js(env, outcome.log_probabilities));
    }
    return out;
  }
};

struct Features {
  std::shared_ptr<Passes> context;
  FeatureRequest request;
  Progress progress;
  FeatureResult outcome;

  void execute(const CancelToken& cancel) {
    outcome = context->features(request, cancel, progress.counter());
  }
  Napi::Value result(Napi::Env env) {
    return array_of(env, outcome.layers.size(), [&](size_t i) {
      Napi::Object entry = Napi::Object::New(env);
      entry.Set("layer", outcome.layers[i]);
      entry.Set("states", hand_over(env, std::move(outcome.states[i])));
      entry.Set("excluded", excluded_to_js(env, outcome.excluded[i]));
      return entry;
    });
  }
};

struct Sweep {
  std::shared_ptr<Passes> context;
  SweepRequest request;
  Progress progress;
  std::vector<SweepTrial> trials;

  void execute(const CancelToken& cancel) { trials = context->sweep(request, cancel, progress.counter()); }
  static Napi::Object row_to_js(Napi::Env env, const SweepRow& row) {
    Napi::Object out = Napi::Object::New(env);
    out.Set("probability", row.target_probability);
    out.Set("continuation", to_js(env, row.continuation));
    out.Set("finite", row.finite);
    out.Set("effects", effects_to_js(env, row.effects));
    return out;
  }
  Napi::Value result(Napi::Env env) {
    return array_of(env, trials.size(), [&](size_t i) {
      const SweepTrial& trial = trials[i];
      Napi::Object entry = Napi::Object::New(env);
      entry.Set("target", trial.target);
      entry.Set("baseline", row_to_js(env, trial.baseline));
      entry.Set("rows", array_of(env, trial.rows.size(),
                                 [&](size_t row) { return row_to_js(env, trial.rows[row]); }));
      return entry;
    });
  }
};

struct PatchSweep {
  std::shared_ptr<Passes> context;
  PatchSweepRequest request;
  Progress progress;
  PatchSweepResult outcome;

  void execute(const CancelToken& cancel) {
    outcome = context->patch_sweep(request, cancel, [this](size_t done, size_t total, const auto& growth) {
      progress.report(static_cast<double>(done), static_cast<double>(total), growth, growth_to_js);
    });
  }
  static Napi::Value growth_to_js(Napi::Env env, const PatchGrowth& growth) {
    Napi::Object out = Napi::Object::New(env);
    out.Set("clean", growth.clean);
    out.Set("corrupted", growth.corrupted);
    out.Set("patched", to_js(env, growth.patched));
    return out;
  }
  Napi::Value result(Napi::Env env) {
    Napi::Object out = Napi::Object::New(env);
    out.Set("target", outcome.target);
    out.Set("foil", outcome.foil);
    out.Set("clean", outcome.clean);
    out.Set("corrupted", outcome.corrupted);
    out.Set("restored", outcome.restored);
    out.Set("patched", to_js(env, outcome.patched));
    if (!outcome.control.empty()) out.Set("control", to_js(env, outcome.control));
    out.Set("changeLength", to_js(env, outcome.change_length));
    out.Set("rowLength", to_js(env, outcome.row_length));
    out.Set("computedSites", static_cast<double>(outcome.computed_sites));
    out.Set("computedTokens", static_cast<double>(outcome.computed_tokens));
    return out;
  }
};

struct AskEmbeddingInput {
  std::shared_ptr<Passes> context;
  EmbeddingInput found;

  void execute(const CancelToken& cancel) { found = context->embedding_input(cancel); }
  Napi::Value result(Napi::Env env) {
    Napi::Object out = Napi::Object::New(env);
    out.Set("supported", found.supported);
    out.Set("reason", found.reason);
    out.Set("tokenScale", found.token_scale);
    return out;
  }
};

struct Explain {
  std::shared_ptr<Passes> context;
  ExplainRequest request;
  Progress progress;
  std::vector<Explanation> outcome;

  void execute(const CancelToken& cancel) { outcome = context->explain(request, cancel, progress.counter()); }
  Napi::Value result(Napi::Env env) {
    return array_of(env, outcome.size(), [&](size_t i) {
      const Explanation& explanation = outcome[i];
      Napi::Object entry = Napi::Object::New(env);
      if (!explanation.logits.empty()) entry.Set("logits", to_js(env, explanation.logits));
      entry.Set("answers", array_of(env, explanation.answers.size(), [&](size_t sample) {
                  const Answer& answer = explanation.answers[sample];
                  Napi::Object one = Napi::Object::New(env);
                  one.Set("tokens", to_js(env, answer.tokens));
                  one.Set("ended", answer.ended);
                  return one;
                }));
      return entry;
    });
  }
};

struct Direct {
  std::shared_ptr<Passes> context;
  std::vector<float> state;
  llama_token token = -1;
  LogitDirection outcome;

  void execute(const CancelToken&) { outcome = context->logit_direction(state, token); }
  Napi::Value result(Napi::Env env) {
    Napi::Object out = Napi::Object::New(env);
    out.Set("direction", to_js(env, outcome.direction));
    out.Set("constant", outcome.constant);
    return out;
  }
};

struct LensLogits {
  std::shared_ptr<Passes> context;
  std::vector<float> rows;
  std::vector<float> logits;

  void execute(const CancelToken&) { logits = context->lens_logits(rows); }
  Napi::Value result(Napi::Env env) { return hand_over(env, std::move(logits)); }
};

struct ReadLens {
  std::shared_ptr<Passes> context;
  LensRequest request;
  std::vector<LensReading> readings;

  void execute(const CancelToken& cancel) { readings = context->read_lens(std::move(request), cancel); }
  Napi::Value result(Napi::Env env) {
    return array_of(env, readings.size(), [&](size_t i) {
      const LensReading& reading = readings[i];
      Napi::Object out = top_to_js(env, reading.top);
      if (!reading.entropies.empty()) out.Set("entropies", to_js(env, reading.entropies));
      if (!reading.divergences.empty()) out.Set("divergences", to_js(env, reading.divergences));
      return out;
    });
  }
};

struct Forget {
  std::shared_ptr<Passes> context;

  void execute(const CancelToken&) { context->reset(); }
  Napi::Value result(Napi::Env env) { return env.Undefined(); }
};

Napi::Object describe(const Passes& context, Napi::Env env) {
  const ResidualStream& stream = context.stream();
  Napi::Object out = Napi::Object::New(env);
  out.Set("nCtx", context.n_ctx());
  out.Set("nBatch", context.n_batch());
  out.Set("causal", context.causal());
  out.Set("supported", stream.supported);
  out.Set("reason", stream.reason);
  out.Set("sidePath", stream.side_path);
  out.Set("lensSupported", stream.lens.supported);
  out.Set("lensReason", stream.lens.reason);
  out.Set("tensorNames", to_js(env, stream.blocks));
  const BlockPoints& points = stream.points;
  out.Set("points", array_of(env, kPointCount, [&](size_t i) {
            Napi::Object point = Napi::Object::New(env);
            point.Set("point", kPointNames[i]);
            point.Set("supported", points.found[i].supported);
            point.Set("reason", points.found[i].reason);
            std::vector<int32_t> layers;
            std::vector<int32_t> widths;
            std::vector<int32_t> heads;
            std::vector<int32_t> experts;
            for (size_t layer = 0; layer < points.found[i].sites.size(); ++layer) {
              if (points.found[i].sites[layer].node < 0) continue;
              layers.push_back(static_cast<int32_t>(layer));
              widths.push_back(points.found[i].sites[layer].width);
              heads.push_back(points.found[i].sites[layer].heads);
              experts.push_back(points.found[i].sites[layer].experts);
            }
            point.Set("layers", to_js(env, layers));
            point.Set("widths", to_js(env, widths));
            point.Set("heads", to_js(env, heads));
            point.Set("experts", to_js(env, experts));
            return point;
          }));
  out.Set("parallel", points.parallel);
  out.Set("normed", points.normed);
  out.Set("scaled", points.scaled);
  return out;
}

}  // namespace

void ContextObject::define(Napi::Env env) {
  define_class(env, "Context",
               {
                   while_open<&ContextObject::advance>("advance"),
                   while_open<&ContextObject::features>("features"),
                   while_open<&ContextObject::sweep>("sweep"),
                   while_open<&ContextObject::patch_sweep>("patchSweep"),
                   while_open<&ContextObject::embedding_input>("embeddingInput"),
                   while_open<&ContextObject::explain>("explain"),
                   while_open<&ContextObject::logit_direction>("logitDirection"),
                   while_open<&ContextObject::lens_logits>("lensLogits"),
                   while_open<&ContextObject::read_lens>("readLens"),
                   while_open<&ContextObject::reset>("reset"),
                   closing(),
               });
}

ContextObject::ContextObject(const Napi::CallbackInfo& info) : HandleObject(info) {
  set_info(info, describe);
}

Napi::Value ContextObject::create(Napi::Env env, std::shared_ptr<Model> model, const Napi::Object& object) {
  CreateContext operation;
  operation.model = std::move(model);
  operation.options.n_ctx = static_cast<uint32_t>(int_field(object, "nCtx", 512));
  operation.options.n_batch = static_cast<uint32_t>(int_field(object, "nBatch", 0));
  operation.options.n_seq_max = static_cast<uint32_t>(int_field(object, "maxSequences", 1));
  operation.options.n_threads = int_field(object, "threads", 0);
  operation.options.keep_attention = bool_field(object, "keepAttention", false);
  return run_async(env, std::move(operation));
}

Napi::Value ContextObject::advance(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  Advance operation;
  operation.context = held_;
  AdvanceRequest& request = operation.request;
  request.tokens = token_list(options.Get("tokens"));
  request.layers = int_list_field(options, "layers");
  request.points = point_list(options.Get("points"));
  request.all_rows = bool_field(options, "allRows", true);
  request.keep_states = bool_field(options, "keepStates", true);
  request.lens_top = int_field(options, "lensTopK", 0);
  request.lens_target = int_field(options, "lensTarget", -1);
  request.lens_answer = bool_field(options, "lensAnswer", false);
  request.next_top = int_field(options, "nextTopK", 0);
  request.keep_logits = bool_field(options, "logits", false);
  request.scored = token_list(options.Get("scored"));
  request.early_exit = bool_field(options, "earlyExit", false);
  request.edits = edit_plan(options.Get("edits"));
  object_field(options, "attention", [&](const Napi::Object& attention) {
    request.attention.layers = int_list_field(attention, "layers");
    request.attention.heads = int_list_field(attention, "heads");
    request.attention.prove = bool_field(attention, "prove", false);
  });
  request.routing = int_list_field(options, "routing");
  return run_async(info.Env(), std::move(operation), CancelObject::from(options.Get("cancel")));
}

Napi::Value ContextObject::features(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  Features operation;
  operation.context = held_;
  operation.request.layers = int_list_field(options, "layers");
  operation.request.point = name_field<Point>(options, "point", kPointNames, Point::kBlockOut);
  operation.request.sequences = token_lists(options.Get("sequences"));
  operation.request.rows =
      name_field<FeatureRows>(options, "rows", std::array{"last", "all", "mean"}, FeatureRows::kLast);
  operation.request.starts = token_list(options.Get("starts"));
  operation.progress = Progress(info.Env(), options.Get("onProgress"));
  return run_async(info.Env(), std::move(operation), CancelObject::from(options.Get("cancel")));
}

Napi::Value ContextObject::sweep(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  Sweep operation;
  operation.context = held_;
  SweepRequest& request = operation.request;
  request.prompts = token_lists(options.Get("prompts"));
  request.max_tokens = int_field(options, "maxTokens", 32);
  request.targets = token_list(options.Get("targets"));
  request.plans = edit_plans(options.Get("plans"));
  operation.progress = Progress(info.Env(), options.Get("onProgress"));
  return run_async(info.Env(), std::move(operation), CancelObject::from(options.Get("cancel")));
}

Napi::Value ContextObject::patch_sweep(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  PatchSweep operation;
  operation.context = held_;
  PatchSweepRequest& request = operation.request;
  request.clean = token_list(options.Get("clean"));
  request.corrupted = token_list(options.Get("corrupted"));
  request.denoise = bool_field(options, "denoise", true);
  each_object(options.Get("places"), "places", [&](const Napi::Object& place) {
    const Point point = name_field<Point>(place, "point", kPointNames, Point::kBlockOut);
    request.places.push_back({{int_field(place, "layer", -1), point}, int_field(place, "head", -1)});
  });
  request.clean_positions = int_list_field(options, "cleanPositions");
  request.corrupted_positions = int_list_field(options, "corruptedPositions");
  request.target = int_field(options, "target", -1);
  request.foil = int_field(options, "foil", -1);
  request.controls = float_list(options.Get("controls"));
  operation.progress = Progress(info.Env(), options.Get("onProgress"));
  return run_async(info.Env(), std::move(operation), CancelObject::from(options.Get("cancel")));
}

Napi::Value ContextObject::embedding_input(const Napi::CallbackInfo& info) {
  return run_async(info.Env(), AskEmbeddingInput{held_, {}},
                   CancelObject::from(options_of(info).Get("cancel")));
}

Napi::Value ContextObject::explain(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  Explain operation;
  operation.context = held_;
  ExplainRequest& request = operation.request;
  request.before = token_list(options.Get("before"));
  request.after = token_list(options.Get("after"));
  each_object(options.Get("fillings"), "fillings", [&](const Napi::Object& filling) {
    request.fillings.push_back({float_list(filling.Get("row")), int_field(filling, "token", -1)});
  });
  request.max_tokens = int_field(options, "maxTokens", 1);
  request.samples = int_field(options, "samples", 1);
  request.temperature = static_cast<float>(number_field(options, "temperature", 0));
  request.draws = double_list(options.Get("draws"));
  request.keep_logits = bool_field(options, "logits", false);
  operation.progress = Progress(info.Env(), options.Get("onProgress"));
  return run_async(info.Env(), std::move(operation), CancelObject::from(options.Get("cancel")));
}

Napi::Value ContextObject::logit_direction(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  Direct operation{held_, float_list(options.Get("state")), int_field(options, "token", -1), {}};
  return run_async(info.Env(), std::move(operation));
}

Napi::Value ContextObject::lens_logits(const Napi::CallbackInfo& info) {
  return run_async(info.Env(), LensLogits{held_, float_list(options_of(info).Get("rows")), {}});
}

Napi::Value ContextObject::read_lens(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  ReadLens operation;
  operation.context = held_;
  LensRequest& request = operation.request;
  each_object(options.Get("places"), "places", [&](const Napi::Object& place) {
    LensRows rows{float_list(place.Get("states")), {}};
    object_field(place, "translator", [&](const Napi::Object& given) {
      Translator& translator = rows.translator.emplace();
      translator.path = string_field(given, "path");
      translator.half = bool_field(given, "half", false);
      translator.matrix = number_field(given, "matrix", 0);
      translator.bias = number_field(given, "bias", 0);
      translator.residual = bool_field(given, "residual", false);
    });
    request.places.push_back(std::move(rows));
  });
  request.output = float_list(options.Get("output"));
  request.top = int_field(options, "top", 1);
  request.targets = token_list(options.Get("targets"));
  request.entropy = bool_field(options, "entropy", false);
  return run_async(info.Env(), std::move(operation), CancelObject::from(options.Get("cancel")));
}

Napi::Value ContextObject::reset(const Napi::CallbackInfo& info) {
  return run_async(info.Env(), Forget{held_});
}

}  // namespace tapline
