#include "napi/plan_args.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "napi/args.h"
#include "napi/results.h"

namespace tapline {

namespace {

using dictionaries::Dictionary;

void read_positions(const Napi::Object& object, Positions& positions) {
  object_field(object, "positions", [&](const Napi::Object& given) {
    std::vector<int32_t> ends;
    read_fields(given, "prompt", positions.prompt, "generated", positions.generated, "ranges", ends);
    positions.part = name_field<Positions::Part>(given, "part", std::array{"any", "thinking", "answer"},
                                                 Positions::Part::kAny);
    for (size_t i = 0; i + 1 < ends.size(); i += 2) positions.ranges.push_back({ends[i], ends[i + 1]});
  });
}

/// The activation of a dictionary's feature. The file stays mapped while the gauge exists.
std::shared_ptr<const Gauge> gauge_of(const Napi::Object& feature, size_t width) {
  const auto dictionary = std::make_shared<const Dictionary>(dictionary_layout(feature.Get("dictionary")));
  if (static_cast<size_t>(dictionary->hidden()) != width) wrong_type("a feature", "of the vector's width");
  const int index = dictionary->checked_feature(field(feature, "index", -1));
  return std::make_shared<const Gauge>(
      [dictionary, index](const float* row, const std::function<double(double)>& change) {
        const dictionaries::FeatureOfRow read = dictionary->feature(row, index, change);
        return Reading{read.activation, read.unit};
      });
}

Place read_place(const Napi::Object& object) {
  Place place;
  read_fields(object, "layer", place.layer);
  place.point = name_field<Point>(object, "point", kPointNames, Point::kBlockOut);
  return place;
}

Edit read_edit(const Napi::Object& object) {
  Edit edit;
  edit.layer = -1;
  std::vector<float> vector;
  read_fields(object, "layer", edit.layer, "heads", edit.heads, "scale", edit.scale, "strength",
              edit.strength, "vector", vector, "min", edit.least, "max", edit.most);
  read_positions(object, edit.positions);
  edit.point = name_field<Point>(object, "point", kPointNames, Point::kBlockOut);
  edit.kind = name_field<EditKind>(object, "kind", std::array{"affine", "project_out", "clamp", "hold"});
  edit.unit = name_field<StrengthUnit>(object, "unit", std::array{"unit", "vector", "row_norm"});
  object_field(object, "feature", [&](const Napi::Object& feature) {
    edit.gauge = gauge_of(feature, vector.size());
    const auto read = name_field<Point>(feature, "point", kPointNames, edit.point);
    if (read != edit.point) edit.gauge_at = read;
  });
  if (!vector.empty()) edit.direction = std::make_shared<const Direction>(std::move(vector));
  if ((edit.kind == EditKind::kHold) != (edit.gauge != nullptr)) wrong_type("a hold", "of a feature");
  return edit;
}

/// The most active features of rows. The file stays mapped while the function exists.
void read_dictionary(const Napi::Object& entry, LiveDictionary& live) {
  read_fields(entry, "name", live.name, "top", live.top);
  live.place = read_place(entry);
  const auto dictionary = std::make_shared<const Dictionary>(dictionary_layout(entry.Get("dictionary")));
  live.hidden = static_cast<size_t>(dictionary->hidden());
  live.strongest = [dictionary, top = static_cast<size_t>(std::max(live.top, 0))](const float* rows,
                                                                                  size_t count, int threads) {
    const dictionaries::SparseRows sparse = dictionary->encode(rows, count, threads, CancelToken());
    LiveDictionary::Strongest found(count);
    for (size_t row = 0; row < count; ++row) {
      std::vector<LiveFeature>& active = found[row];
      const auto end = static_cast<size_t>(sparse.pointers[row + 1]);
      for (auto at = static_cast<size_t>(sparse.pointers[row]); at < end; ++at)
        active.push_back({sparse.indices[at], sparse.values[at]});
      // Stable, so that ties stay ordered by feature.
      std::stable_sort(active.begin(), active.end(), [](const LiveFeature& a, const LiveFeature& b) {
        return a.activation > b.activation;
      });
      if (active.size() > top) active.resize(top);
    }
    return found;
  };
}

void read_watch(const Napi::Object& object, LiveWatch& watch) {
  read_fields(object, "layers", watch.layers, "norms", watch.norms, "lensTop", watch.lens_top, "probes",
              watch.probes, "heads", watch.heads);
  watch.point = name_field<Point>(object, "point", kPointNames, Point::kBlockOut);
  read_positions(object, watch.positions);
  object_field(object, "states", [&](const Napi::Object& states) {
    read_fields(states, "id", watch.states, "bytes", watch.states_bytes);
  });
  each_object(object.Get("projections"), "projections", [&](const Napi::Object& entry) {
    LiveProjection& projection = watch.projections.emplace_back();
    read_fields(entry, "name", projection.name);
    projection.place = read_place(entry);
    projection.direction = std::make_shared<const Direction>(field<std::vector<float>>(entry, "vector"));
  });
  each_object(object.Get("lenses"), "lenses", [&](const Napi::Object& entry) {
    LiveLens& lens = watch.lenses.emplace_back();
    read_fields(entry, "name", lens.name);
    lens.translators.resize(watch.layers.size());
    each_object(entry.Get("translators"), "translators", [&](const Napi::Object& given) {
      const auto index = static_cast<size_t>(field(given, "index", -1));
      if (index < lens.translators.size()) lens.translators[index] = lens_translator(given);
    });
  });
  each_object(object.Get("dictionaries"), "dictionaries",
              [&](const Napi::Object& entry) { read_dictionary(entry, watch.dictionaries.emplace_back()); });
}

}  // namespace

Translator lens_translator(const Napi::Object& given) {
  Translator translator;
  read_fields(given, "path", translator.path, "half", translator.half, "matrix", translator.matrix, "bias",
              translator.bias, "residual", translator.residual);
  return translator;
}

dictionaries::Layout dictionary_layout(const Napi::Value& given) {
  if (!given.IsObject()) wrong_type("a dictionary", "an object");
  const auto object = given.As<Napi::Object>();
  dictionaries::Layout layout;
  read_fields(object, "path", layout.path, "subtractBias", layout.subtract_bias, "hidden", layout.hidden,
              "features", layout.features, "k", layout.k, "encoder", layout.encoder, "encoderBias",
              layout.encoder_bias, "decoder", layout.decoder, "decoderBias", layout.decoder_bias, "threshold",
              layout.threshold, "gain", layout.gain, "magnitudeBias", layout.magnitude, "transcoder",
              layout.transcoder, "skip", layout.skip, "blocks", layout.blocks);
  layout.activation = name_field<dictionaries::Activation>(
      object, "activation", std::array{"relu", "jumprelu", "topk", "topk_raw", "gated"});
  layout.scaling = name_field<dictionaries::RowScaling>(object, "rowScaling",
                                                        std::array{"none", "constant_norm", "layer_norm"});
  constexpr std::array types{"f32", "f16", "bf16"};
  layout.encoder_type = name_field(object, "encoderType", types, std::optional(layout.encoder_type));
  layout.decoder_type = name_field(object, "decoderType", types, std::optional(layout.decoder_type));
  return layout;
}

EditPlan edit_plan(const Napi::Value& value) {
  EditPlan plan;
  each_object(value, "edits", [&](const Napi::Object& object) { plan.push_back(read_edit(object)); });
  return plan;
}

std::shared_ptr<LivePlan> live_plan(const Napi::Value& value) {
  if (!value.IsObject()) return nullptr;
  const auto object = value.As<Napi::Object>();
  auto plan = std::make_shared<LivePlan>();
  plan->edits = edit_plan(object.Get("edits"));
  read_fields(object, "pair", plan->pair, "gates", plan->gates, "stop", plan->stop, "labels", plan->labels);
  each_object(object.Get("probes"), "probes", [&](const Napi::Object& entry) {
    LiveProbe& probe = plan->probes.emplace_back();
    read_fields(entry, "name", probe.name, "weight", probe.weight, "bias", probe.bias);
    probe.place = read_place(entry);
  });
  each_object(object.Get("conditions"), "conditions", [&](const Napi::Object& entry) {
    LiveCondition& condition = plan->conditions.emplace_back();
    read_fields(entry, "probe", condition.probe, "bound", condition.bound, "above", condition.above, "tokens",
                condition.tokens);
  });
  plan->gates.resize(plan->edits.size(), -1);
  plan->labels.resize(plan->edits.size(), "{}");
  object_field(object, "watch", [&](const Napi::Object& watch) { read_watch(watch, plan->watch); });
  return plan;
}

Napi::Value to_js(Napi::Env env, const std::vector<EditEffect>& effects) {
  return array_of(env, effects, [&](const EditEffect& effect) {
    const double rows = effect.rows > 0 ? static_cast<double>(effect.rows) : 1;
    return object_of(env, "rows", effect.rows, "rowLength", effect.row_length / rows, "changeLength",
                     effect.change_length / rows);
  });
}

Napi::Value to_js(Napi::Env env, const std::vector<LiveStates>& all) {
  return array_of(env, all, [&](const LiveStates& states) {
    size_t at = 0;
    return object_of(env, "id", states.id, "promptTokens", states.n_prompt, "rows", states.rows, "tokens",
                     states.tokens, "layers", array_of(env, states.layers, [&](int layer) {
                       return object_of(env, "layer", layer, "values", states.values[at++]);
                     }));
  });
}

}  // namespace tapline
