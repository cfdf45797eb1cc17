#pragma once

#include <array>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "experiment/passes.h"
#include "napi/args.h"
#include "napi/cancel_object.h"
#include "napi/results.h"
#include "napi/worker.h"

namespace tapline {

/// A call of a context's method: on what, and with which options.
struct ContextCall {
  Napi::Env env;
  std::shared_ptr<Passes> passes;
  Napi::Object options;
};

/// Reads the options and starts one experiment; a promise of what it finds.
using Experiment = Napi::Value(const ContextCall& call);

/// Each is defined in its own file in this folder, and offered by ContextObject::define().
namespace experiments {
Experiment advance, embedding_input, explain, features, lens_logits, logit_direction, patch_sweep, read_lens,
    sweep;
}

template <class Compute, class Write>
struct ExperimentOperation {
  std::shared_ptr<Passes> passes;
  Progress progress;
  Compute compute;
  Write write;
  std::optional<std::invoke_result_t<Compute&, Passes&, const CancelToken&, Progress&>> found;

  void execute(const CancelToken& cancel) { found.emplace(compute(*passes, cancel, progress)); }
  Napi::Value result(Napi::Env env) { return write(env, *found); }
};

/// Runs found = compute(passes, cancel, progress) on another thread, with the call's `cancel` and
/// `onProgress`, and resolves with write(env, found).
template <class Compute, class Write>
Napi::Value start(const ContextCall& call, Compute compute, Write write) {
  using Operation = ExperimentOperation<Compute, Write>;
  return run_async(call.env,
                   Operation{call.passes,
                             Progress(call.env, call.options.Get("onProgress")),
                             std::move(compute),
                             std::move(write),
                             {}},
                   CancelObject::from(call.options.Get("cancel")));
}

/// The same of found = compute(passes, request, cancel, progress), which counts.
template <class Request, class Found, class Write>
Napi::Value start(const ContextCall& call, Request request,
                  Found (*compute)(Passes&, const Request&, const CancelToken&, const CountProgress&),
                  Write write) {
  return start(
      call,
      [request = std::move(request), compute](Passes& passes, const CancelToken& cancel, Progress& progress) {
        return compute(passes, request, cancel, progress.counter());
      },
      write);
}

inline void set_fields(Napi::Object) {}

/// Sets properties of an object: name, value, name, value …
template <class Value, class... Rest>
void set_fields(Napi::Object object, const char* name, const Value& value, const Rest&... rest) {
  if constexpr (std::is_integral_v<Value> && sizeof(Value) == 8) {
    object.Set(name, static_cast<double>(value));
  } else {
    object.Set(name, value);
  }
  set_fields(object, rest...);
}

template <class... Fields>
Napi::Object object_of(Napi::Env env, const Fields&... fields) {
  Napi::Object object = Napi::Object::New(env);
  set_fields(object, fields...);
  return object;
}

/// A point by its name; where none is named, the block output.
inline Point point_field(const Napi::Object& object) {
  return name_field<Point>(object, "point", kPointNames, Point::kBlockOut);
}

inline Napi::Object top_to_js(Napi::Env env, const TopTokens& top) {
  Napi::Object out = object_of(env, "k", top.k, "tokenIds", to_js(env, top.ids), "probabilities",
                               to_js(env, top.probabilities));
  if (!top.target_ranks.empty()) {
    set_fields(out, "targetProbabilities", to_js(env, top.target_probabilities), "targetRanks",
               to_js(env, top.target_ranks));
  }
  return out;
}

}  // namespace tapline
