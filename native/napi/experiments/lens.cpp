#include "experiment/lens.h"

#include "napi/experiments/experiment.h"

namespace tapline {

namespace {

LensRequest read_request(const Napi::Object& options) {
  LensRequest request;
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
  return request;
}

Napi::Value write_result(Napi::Env env, const std::vector<LensReading>& readings) {
  return array_of(env, readings.size(), [&](size_t i) {
    const LensReading& reading = readings[i];
    Napi::Object out = top_to_js(env, reading.top);
    if (!reading.entropies.empty()) out.Set("entropies", to_js(env, reading.entropies));
    if (!reading.divergences.empty()) out.Set("divergences", to_js(env, reading.divergences));
    return out;
  });
}

}  // namespace

Napi::Value experiments::read_lens(const ContextCall& call) {
  auto compute = [request = read_request(call.options)](Passes& passes, const CancelToken& cancel,
                                                        Progress&) mutable {
    return tapline::read_lens(passes, std::move(request), cancel);
  };
  return start(call, std::move(compute), write_result);
}

Napi::Value experiments::lens_logits(const ContextCall& call) {
  auto compute = [rows = float_list(call.options.Get("rows"))](Passes& passes, const CancelToken&,
                                                               Progress&) {
    return tapline::lens_logits(passes, rows);
  };
  return start(call, std::move(compute),
               [](Napi::Env env, std::vector<float>& logits) { return hand_over(env, std::move(logits)); });
}

Napi::Value experiments::logit_direction(const ContextCall& call) {
  auto compute = [state = float_list(call.options.Get("state")),
                  token = int_field(call.options, "token", -1)](Passes& passes, const CancelToken&,
                                                                Progress&) {
    return tapline::logit_direction(passes, state, token);
  };
  return start(call, std::move(compute), [](Napi::Env env, const LogitDirection& found) {
    return object_of(env, "direction", to_js(env, found.direction), "constant", found.constant);
  });
}

}  // namespace tapline
