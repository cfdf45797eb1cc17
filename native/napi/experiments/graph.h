#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "experiment/graph_targets.h"
#include "napi/experiments/experiment.h"

namespace tapline {

// What all graphs read from JavaScript and hand back to it.

inline std::vector<LogitTarget> read_targets(const Napi::Object& options) {
  std::vector<LogitTarget> targets;
  each_object(options.Get("targets"), "targets", [&](const Napi::Object& given) {
    LogitTarget target;
    read_fields(given, "position", target.position, "token", target.token, "minus", target.minus, "weight",
                target.weight);
    targets.push_back(target);
  });
  return targets;
}

/// `parts` are handed over, not copied.
template <class Edges>
Napi::Object write_edges(Napi::Env env, Edges& edges) {
  Napi::Object out = object_of(env, "columns", edges.columns, "values", edges.values, "constants",
                               edges.constants, "residuals", edges.residuals);
  out.Set("parts", hand_over(env, std::move(edges.parts)));
  return out;
}

inline std::vector<int32_t> node_numbers(const std::vector<size_t>& nodes) {
  return {nodes.begin(), nodes.end()};
}

}  // namespace tapline
