#include "experiment/transcoder_graph.h"

#include <utility>

#include "napi/experiments/experiment.h"
#include "napi/plan_args.h"

namespace tapline {

namespace {

TranscoderGraphRequest read_request(const Napi::Object& options) {
  TranscoderGraphRequest request;
  read_fields(options, "tokens", request.tokens, "nodes", request.nodes, "tried", request.tried, "zeros",
              request.zeros, "precise", request.precise, "estimate", request.estimate);
  each_object(options.Get("targets"), "targets", [&](const Napi::Object& given) {
    LogitTarget target;
    read_fields(given, "position", target.position, "token", target.token, "minus", target.minus, "weight",
                target.weight);
    request.targets.push_back(target);
  });
  each_object(options.Get("transcoders"), "transcoders", [&](const Napi::Object& given) {
    LayerTranscoder one;
    read_fields(given, "layer", one.layer, "tokens", one.use.tokens, "features", one.use.features);
    one.point = name_field<Point>(given, "point", kPointNames, Point::kFfnIn);
    one.use.layout = dictionary_layout(given.Get("dictionary"));
    one.use.reads_stream = one.point != Point::kFfnIn;
    request.transcoders.push_back(std::move(one));
  });
  return request;
}

Napi::Value write_result(Napi::Env env, TranscoderGraph& found) {
  std::vector<int32_t> tried;
  for (const size_t node : found.tried) tried.push_back(static_cast<int32_t>(node));
  Napi::Object nodes = object_of(env, "layers", found.layers, "tokens", found.tokens, "indices",
                                 found.features, "values", found.activations, "relevances", found.relevances);
  Napi::Object edges = object_of(env, "columns", found.edges.columns, "values", found.edges.values,
                                 "constants", found.edges.constants, "residuals", found.edges.residuals);
  edges.Set("parts", hand_over(env, std::move(found.edges.parts)));
  return object_of(env, "bytes", found.bytes, "nodes", nodes, "edges", edges, "starts", found.starts, "apart",
                   found.edges.apart, "ffnInApart", found.ffn_in_apart, "tried", tried, "losses",
                   array_of(env, found.losses, [&](const auto& numbers) { return to_js(env, numbers); }),
                   "frozen", found.frozen, "apartBound", found.apart_bound, "residualBound",
                   found.residual_bound);
}

}  // namespace

Napi::Value experiments::transcoder_graph(const std::shared_ptr<Passes>& passes, const Call& call) {
  return start(passes, call, read_request(call.options), tapline::transcoder_graph,
               [](Napi::Env env, TranscoderGraph& found) { return write_result(env, found); });
}

}  // namespace tapline
