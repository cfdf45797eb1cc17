#include "experiment/attribution_graph.h"

#include "napi/experiments/graph.h"

namespace tapline {

namespace {

AttributionGraphRequest read_request(const Napi::Object& options) {
  AttributionGraphRequest request;
  read_fields(options, "tokens", request.tokens, "nodes", request.nodes, "tried", request.tried, "first",
              request.first, "precise", request.precise, "estimate", request.estimate);
  request.targets = read_targets(options);
  return request;
}

Napi::Value write_result(Napi::Env env, AttributionGraph& found) {
  std::vector<int32_t> heads, layers, tokens, indices;
  std::vector<double> values, influences, relevances;
  for (const GraphNode& node : found.nodes) {
    heads.push_back(node.head ? 1 : 0);
    layers.push_back(node.layer);
    tokens.push_back(node.token);
    indices.push_back(node.index);
    values.push_back(node.value);
    influences.push_back(node.influence);
    relevances.insert(relevances.end(), node.relevance.begin(), node.relevance.end());
  }
  const auto list = [&](const auto& numbers) { return to_js(env, numbers); };
  Napi::Object nodes = object_of(env, "heads", heads, "layers", layers, "tokens", tokens, "indices", indices,
                                 "values", values, "influences", influences, "relevances", relevances);
  return object_of(env, "bytes", found.bytes, "nodes", nodes, "edges", write_edges(env, found.edges),
                   "embeddings", array_of(env, found.embeddings, list), "rounding", found.rounding, "apart",
                   found.apart, "ffnApart", found.ffn_apart, "tried", node_numbers(found.tried), "losses",
                   array_of(env, found.losses, list), "apartBound", found.apart_bound, "residualBound",
                   found.residual_bound);
}

}  // namespace

Napi::Value experiments::attribution_graph(const std::shared_ptr<Passes>& passes, const Call& call) {
  return start(passes, call, read_request(call.options), tapline::attribution_graph,
               [](Napi::Env env, AttributionGraph& found) { return write_result(env, found); });
}

}  // namespace tapline
