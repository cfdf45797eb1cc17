#include "experiment/patch_sweep.h"

#include "napi/experiments/experiment.h"

namespace tapline {

namespace {

PatchSweepRequest read_request(const Napi::Object& options) {
  PatchSweepRequest request;
  read_fields(options, "clean", request.clean, "corrupted", request.corrupted, "denoise", request.denoise,
              "cleanPositions", request.clean_positions, "corruptedPositions", request.corrupted_positions,
              "target", request.target, "foil", request.foil, "controls", request.controls);
  each_object(options.Get("places"), "places", [&](const Napi::Object& place) {
    request.places.push_back({{field(place, "layer", -1), point_field(place)}, field(place, "head", -1)});
  });
  return request;
}

Napi::Value growth_to_js(Napi::Env env, const PatchGrowth& growth) {
  return object_of(env, "clean", growth.clean, "corrupted", growth.corrupted, "patched", growth.patched);
}

Napi::Value write_result(Napi::Env env, const PatchSweepResult& found) {
  Napi::Object out =
      object_of(env, "target", found.target, "foil", found.foil, "clean", found.clean, "corrupted",
                found.corrupted, "restored", found.restored, "patched", found.patched, "changeLength",
                found.change_length, "rowLength", found.row_length, "computedSites", found.computed_sites,
                "computedTokens", found.computed_tokens, "restoredTokens", found.restored_tokens);
  set_nonempty(out, "control", found.control);
  return out;
}

}  // namespace

Napi::Value experiments::patch_sweep(const std::shared_ptr<Passes>& passes, const Call& call) {
  auto compute = [passes, request = read_request(call.options)](const CancelToken& cancel,
                                                                Progress& progress) {
    return tapline::patch_sweep(*passes, request, cancel, [&](size_t done, size_t total, const auto& growth) {
      progress.report(static_cast<double>(done), static_cast<double>(total), growth, growth_to_js);
    });
  };
  return start(call, std::move(compute), write_result);
}

}  // namespace tapline
