#pragma once

#include <memory>
#include <utility>

#include "experiment/passes.h"
#include "napi/worker.h"

namespace tapline {

/// Reads a call's options and starts one experiment; returns a promise of its result.
using Experiment = Napi::Value(const std::shared_ptr<Passes>& passes, const Call& call);

/// Each is defined in its own file in this folder and is a row of define_context().
namespace experiments {
Experiment advance, attribution, attribution_graph, embedding_input, explain, features, forward, lens_logits,
    logit_direction, patch_sweep, read_lens, sweep, transcoder_graph;
}

/// Runs found = compute(passes, request, cancel, progress) and resolves with write(env, found).
template <class Request, class Found, class Write>
Napi::Value start(const std::shared_ptr<Passes>& passes, const Call& call, Request request,
                  Found (*compute)(Passes&, const Request&, const CancelToken&, const CountProgress&),
                  Write write) {
  return start(
      call,
      [passes, request = std::move(request), compute](const CancelToken& cancel, Progress& progress) {
        return compute(*passes, request, cancel, progress.counter());
      },
      write);
}

/// The default is the block output.
inline Point point_field(const Napi::Object& object, const char* name = "point") {
  return name_field<Point>(object, name, kPointNames, Point::kBlockOut);
}

inline Napi::Object to_js(Napi::Env env, const TopTokens& top) {
  Napi::Object out = object_of(env, "k", top.k, "tokenIds", top.ids, "probabilities", top.probabilities);
  set_nonempty(out, "targetProbabilities", top.target_probabilities, "targetRanks", top.target_ranks);
  return out;
}

inline Napi::Object to_js(Napi::Env env, const LensReading& reading) {
  Napi::Object out = to_js(env, reading.top);
  set_nonempty(out, "entropies", reading.entropies, "divergences", reading.divergences);
  return out;
}

}  // namespace tapline
