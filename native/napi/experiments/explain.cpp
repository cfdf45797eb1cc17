#include "experiment/explain.h"

#include "napi/experiments/experiment.h"

namespace tapline {

namespace {

ExplainRequest read_request(const Napi::Object& options) {
  ExplainRequest request;
  request.before = token_list(options.Get("before"));
  request.after = token_list(options.Get("after"));
  each_object(options.Get("fillings"), "fillings", [&](const Napi::Object& filling) {
    request.fillings.push_back({float_list(filling.Get("row")), int_field(filling, "token", -1)});
  });
  request.max_tokens = int_field(options, "maxTokens", 1);
  request.samples = int_field(options, "samples", 1);
  request.temperature = static_cast<float>(number_field(options, "temperature", 0));
  request.draws = double_list(options.Get("draws"));
  request.keep_logits = bool_field(options, "logits", false);
  return request;
}

Napi::Value write_result(Napi::Env env, const std::vector<Explanation>& found) {
  return array_of(env, found.size(), [&](size_t i) {
    const std::vector<Answer>& answers = found[i].answers;
    Napi::Object out = Napi::Object::New(env);
    if (!found[i].logits.empty()) out.Set("logits", to_js(env, found[i].logits));
    out.Set("answers", array_of(env, answers.size(), [&](size_t sample) {
              return object_of(env, "tokens", to_js(env, answers[sample].tokens), "ended",
                               answers[sample].ended);
            }));
    return out;
  });
}

}  // namespace

Napi::Value experiments::explain(const ContextCall& call) {
  return start(call, read_request(call.options), tapline::explain, write_result);
}

Napi::Value experiments::embedding_input(const ContextCall& call) {
  auto compute = [](Passes& passes, const CancelToken& cancel, Progress&) {
    return tapline::embedding_input(passes, cancel);
  };
  return start(call, std::move(compute), [](Napi::Env env, const EmbeddingInput& found) {
    return object_of(env, "supported", found.supported, "reason", found.reason, "tokenScale",
                     found.token_scale);
  });
}

}  // namespace tapline
