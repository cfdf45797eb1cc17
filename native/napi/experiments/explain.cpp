#include "experiment/explain.h"

#include "napi/experiments/experiment.h"

namespace tapline {

namespace {

ExplainRequest read_request(const Napi::Object& options) {
  ExplainRequest request;
  read_fields(options, "before", request.before, "after", request.after, "maxTokens", request.max_tokens,
              "samples", request.samples, "temperature", request.temperature, "draws", request.draws,
              "logits", request.keep_logits);
  each_object(options.Get("fillings"), "fillings", [&](const Napi::Object& given) {
    Filling& filling = request.fillings.emplace_back();
    read_fields(given, "row", filling.row, "token", filling.token);
  });
  return request;
}

Napi::Value write_result(Napi::Env env, const std::vector<Explanation>& found) {
  return array_of(env, found, [&](const Explanation& one) {
    Napi::Object out = object_of(env, "answers", array_of(env, one.answers, [&](const Answer& answer) {
                                   return object_of(env, "tokens", answer.tokens, "ended", answer.ended);
                                 }));
    set_nonempty(out, "logits", one.logits);
    return out;
  });
}

}  // namespace

Napi::Value experiments::explain(const std::shared_ptr<Passes>& passes, const Call& call) {
  return start(passes, call, read_request(call.options), tapline::explain, write_result);
}

Napi::Value experiments::embedding_input(const std::shared_ptr<Passes>& passes, const Call& call) {
  auto compute = [passes](const CancelToken& cancel) { return tapline::embedding_input(*passes, cancel); };
  return start(call, std::move(compute), [](Napi::Env env, const EmbeddingInput& found) {
    return object_of(env, "supported", found.supported, "reason", found.reason, "tokenScale",
                     found.token_scale);
  });
}

}  // namespace tapline
