#include "experiment/lens.h"

#include "napi/experiments/experiment.h"
#include "napi/plan_args.h"

namespace tapline {

namespace {

GivenRows read_request(const Napi::Object& options) {
  GivenRows request;
  read_fields(options, "output", request.output, "top", request.top, "targets", request.targets, "entropy",
              request.entropy);
  each_object(options.Get("places"), "places", [&](const Napi::Object& place) {
    GivenRows::Place& rows = request.places.emplace_back();
    read_fields(place, "states", rows.states);
    object_field(place, "translator",
                 [&](const Napi::Object& given) { rows.translator = lens_translator(given); });
  });
  return request;
}

Napi::Value write_result(Napi::Env env, const std::vector<LensReading>& readings) {
  return array_of(env, readings, [&](const LensReading& reading) { return to_js(env, reading); });
}

}  // namespace

Napi::Value experiments::read_lens(const std::shared_ptr<Passes>& passes, const Call& call) {
  auto compute = [passes, request = read_request(call.options)](const CancelToken& cancel) {
    return tapline::read_lens(*passes, request, cancel);
  };
  return start(call, std::move(compute), write_result);
}

Napi::Value experiments::lens_logits(const std::shared_ptr<Passes>& passes, const Call& call) {
  auto compute = [passes, rows = field<std::vector<float>>(call.options, "rows")] {
    return tapline::lens_logits(*passes, rows);
  };
  return start(call, std::move(compute),
               [](Napi::Env env, std::vector<float>& logits) { return hand_over(env, std::move(logits)); });
}

Napi::Value experiments::logit_direction(const std::shared_ptr<Passes>& passes, const Call& call) {
  auto compute = [passes, state = field<std::vector<float>>(call.options, "state"),
                  token = field(call.options, "token", -1)] {
    return tapline::logit_direction(*passes, state, token);
  };
  return start(call, std::move(compute), [](Napi::Env env, const LogitDirection& found) {
    return object_of(env, "direction", found.direction, "constant", found.constant);
  });
}

}  // namespace tapline
