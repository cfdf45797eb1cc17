#include "experiment/patch_sweep.h"

#include "napi/experiments/experiment.h"

namespace tapline {

namespace {

PatchSweepRequest read_request(const Napi::Object& options) {
  PatchSweepRequest request;
  request.clean = token_list(options.Get("clean"));
  request.corrupted = token_list(options.Get("corrupted"));
  request.denoise = bool_field(options, "denoise", true);
  each_object(options.Get("places"), "places", [&](const Napi::Object& place) {
    request.places.push_back(
        {{int_field(place, "layer", -1), point_field(place)}, int_field(place, "head", -1)});
  });
  request.clean_positions = int_list_field(options, "cleanPositions");
  request.corrupted_positions = int_list_field(options, "corruptedPositions");
  request.target = int_field(options, "target", -1);
  request.foil = int_field(options, "foil", -1);
  request.controls = float_list(options.Get("controls"));
  return request;
}

Napi::Value growth_to_js(Napi::Env env, const PatchGrowth& growth) {
  return object_of(env, "clean", growth.clean, "corrupted", growth.corrupted, "patched",
                   to_js(env, growth.patched));
}

Napi::Value write_result(Napi::Env env, const PatchSweepResult& found) {
  Napi::Object out =
      object_of(env, "target", found.target, "foil", found.foil, "clean", found.clean, "corrupted",
                found.corrupted, "restored", found.restored, "patched", to_js(env, found.patched));
  if (!found.control.empty()) out.Set("control", to_js(env, found.control));
  set_fields(out, "changeLength", to_js(env, found.change_length), "rowLength", to_js(env, found.row_length),
             "computedSites", found.computed_sites, "computedTokens", found.computed_tokens);
  return out;
}

}  // namespace

Napi::Value experiments::patch_sweep(const ContextCall& call) {
  auto compute = [request = read_request(call.options)](Passes& passes, const CancelToken& cancel,
                                                        Progress& progress) {
    return tapline::patch_sweep(passes, request, cancel, [&](size_t done, size_t total, const auto& growth) {
      progress.report(static_cast<double>(done), static_cast<double>(total), growth, growth_to_js);
    });
  };
  return start(call, std::move(compute), write_result);
}

}  // namespace tapline
