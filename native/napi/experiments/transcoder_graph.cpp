#include "experiment/transcoder_graph.h"

#include <utility>

#include "napi/experiments/graph.h"
#include "napi/plan_args.h"

namespace tapline {

namespace {

TranscoderGraphRequest read_request(const Napi::Object& options) {
  TranscoderGraphRequest request;
  read_fields(options, "tokens", request.tokens, "nodes", request.nodes, "tried", request.tried, "zeros",
              request.zeros, "precise", request.precise, "estimate", request.estimate);
  request.targets = read_targets(options);
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
  Napi::Object nodes = object_of(env, "layers", found.layers, "tokens", found.tokens, "indices",
                                 found.features, "values", found.activations, "relevances", found.relevances);
  return object_of(env, "bytes", found.bytes, "nodes", nodes, "edges", write_edges(env, found.edges),
                   "starts", found.starts, "apart", found.edges.apart, "ffnInApart", found.ffn_in_apart,
                   "tried", node_numbers(found.tried), "losses",
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
