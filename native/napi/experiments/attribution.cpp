#include "experiment/attribution.h"

#include "napi/experiments/experiment.h"

namespace tapline {

namespace {

AttributionRequest read_request(const Napi::Object& options) {
  AttributionRequest request;
  read_fields(options, "tokens", request.tokens, "other", request.other, "precise", request.precise,
              "neurons", request.neurons);
  each_object(options.Get("targets"), "targets", [&](const Napi::Object& given) {
    AttributionTarget target;
    read_fields(given, "position", target.position, "direction", target.direction, "constant",
                target.constant, "token", target.token, "minus", target.minus);
    if (!target.direction.empty()) {
      read_fields(given, "layer", target.place.layer);
      target.place.point = point_field(given);
    }
    request.targets.push_back(std::move(target));
  });
  return request;
}

Napi::Value write_result(Napi::Env env, const Attribution& found) {
  const auto parts_to_js = [&](const StreamParts& parts) {
    std::vector<int32_t> layers, tokens, neurons;
    std::vector<double> values, activations;
    for (const NeuronPart& part : parts.neurons) {
      layers.push_back(part.layer);
      tokens.push_back(part.token);
      neurons.push_back(part.neuron);
      values.push_back(part.value);
      activations.push_back(part.activation);
    }
    Napi::Object out =
        object_of(env, "value", parts.value, "constant", parts.constant, "residual", parts.residual,
                  "embeddings", parts.embeddings, "ffn", parts.ffn, "rounding", parts.rounding, "heads",
                  array_of(env, parts.heads, [&](const auto& heads) { return to_js(env, heads); }), "streams",
                  parts.streams, "ffnRounding", parts.ffn_rounding);
    if (!parts.ffn_gains.empty()) {
      const auto heads_to_js = [&](const auto& heads) { return to_js(env, heads); };
      out.Set("gains",
              object_of(env, "ffn", parts.ffn_gains, "heads", array_of(env, parts.head_gains, heads_to_js)));
    }
    out.Set("neurons", object_of(env, "layers", layers, "tokens", tokens, "neurons", neurons, "values",
                                 values, "activations", activations));
    return out;
  };
  return object_of(env, "targets", array_of(env, found.pass.functions, parts_to_js), "apart",
                   found.pass.apart, "ffnApart", found.pass.ffn_apart, "apartBound", found.apart_bound,
                   "residualBound", found.residual_bound);
}

}  // namespace

Napi::Value experiments::attribution(const std::shared_ptr<Passes>& passes, const Call& call) {
  return start(passes, call, read_request(call.options), tapline::attribution,
               [](Napi::Env env, Attribution& found) { return write_result(env, found); });
}

}  // namespace tapline
