#include "napi/dictionaries.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "dictionaries/dictionary.h"
#include "napi/args.h"
#include "napi/cancel_object.h"
#include "napi/results.h"
#include "napi/worker.h"

namespace tapline {

namespace {

using dictionaries::Activation;
using dictionaries::Dictionary;
using dictionaries::Layout;
using dictionaries::NumberType;
using dictionaries::RowScaling;
using dictionaries::SparseRows;

size_t count_of(const std::vector<float>& rows, int hidden) {
  if (hidden < 1 || rows.size() % static_cast<size_t>(hidden) != 0)
    throw Error(ErrorCode::kInvalidArgument,
                std::to_string(rows.size()) + " values are no rows of " + std::to_string(hidden) + ".");
  return rows.size() / static_cast<size_t>(hidden);
}

struct Encode {
  Layout layout;
  std::vector<float> rows;
  int threads;
  SparseRows sparse;

  void execute(const CancelToken& cancel) {
    const Dictionary dictionary(layout);
    sparse = dictionary.encode(rows.data(), count_of(rows, layout.hidden), threads, cancel);
  }
  Napi::Value result(Napi::Env env) {
    Napi::Object out = Napi::Object::New(env);
    out.Set("pointers", to_js(env, sparse.pointers));
    out.Set("indices", to_js(env, sparse.indices));
    out.Set("values", to_js(env, sparse.values));
    return out;
  }
};

struct Decode {
  Layout layout;
  SparseRows sparse;
  std::vector<float> rows;
  int threads;
  std::vector<float> decoded;

  void execute(const CancelToken& cancel) {
    const Dictionary dictionary(layout);
    check();
    decoded = dictionary.decode(sparse, rows.data(), threads, cancel);
  }
  Napi::Value result(Napi::Env env) { return to_js(env, decoded); }

 private:
  /// What decode() reads unchecked.
  void check() const {
    const std::vector<double>& pointers = sparse.pointers;
    const bool sound =
        !pointers.empty() && pointers.front() == 0 &&
        pointers.back() == static_cast<double>(sparse.indices.size()) &&
        sparse.values.size() == sparse.indices.size() && std::is_sorted(pointers.begin(), pointers.end()) &&
        std::all_of(sparse.indices.begin(), sparse.indices.end(),
                    [this](int32_t feature) { return feature >= 0 && feature < layout.features; }) &&
        (layout.scaling == RowScaling::kNone || count_of(rows, layout.hidden) + 1 == pointers.size());
    if (!sound) throw Error(ErrorCode::kInvalidArgument, "The sparse rows do not fit the dictionary.");
  }
};

Napi::Value encode(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  return run_async(info.Env(),
                   Encode{dictionary_layout(options.Get("dictionary")),
                          float_list(options.Get("rows")),
                          int_field(options, "threads", 0),
                          {}},
                   CancelObject::from(options.Get("cancel")));
}

Napi::Value decode(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  SparseRows sparse{
      double_list(options.Get("pointers")),
      copy_of<Napi::Int32Array, int32_t>(options.Get("indices"), napi_int32_array, "an Int32Array"),
      float_list(options.Get("values"))};
  return run_async(info.Env(),
                   Decode{dictionary_layout(options.Get("dictionary")),
                          std::move(sparse),
                          float_list(options.Get("rows")),
                          int_field(options, "threads", 0),
                          {}},
                   CancelObject::from(options.Get("cancel")));
}

}  // namespace

dictionaries::Layout dictionary_layout(const Napi::Value& given) {
  if (!given.IsObject()) wrong_type("a dictionary", "an object");
  const auto object = given.As<Napi::Object>();
  Layout layout;
  layout.path = string_field(object, "path");
  layout.activation = name_field<Activation>(object, "activation",
                                             std::array{"relu", "jumprelu", "topk", "topk_raw", "gated"});
  layout.scaling =
      name_field<RowScaling>(object, "rowScaling", std::array{"none", "constant_norm", "layer_norm"});
  layout.subtract_bias = bool_field(object, "subtractBias", false);
  layout.hidden = int_field(object, "hidden", 0);
  layout.features = int_field(object, "features", 0);
  layout.k = int_field(object, "k", 0);
  constexpr std::array types{"f32", "f16", "bf16"};
  layout.encoder_type = name_field<NumberType>(object, "encoderType", types, NumberType::kF32);
  layout.decoder_type = name_field<NumberType>(object, "decoderType", types, NumberType::kF32);
  layout.encoder = number_field(object, "encoder", 0);
  layout.encoder_bias = number_field(object, "encoderBias", 0);
  layout.decoder = number_field(object, "decoder", 0);
  layout.decoder_bias = number_field(object, "decoderBias", 0);
  layout.threshold = number_field(object, "threshold", 0);
  layout.gain = number_field(object, "gain", 0);
  layout.magnitude = number_field(object, "magnitudeBias", 0);
  return layout;
}

void define_dictionaries(Napi::Env env, Napi::Object exports) {
  exports.Set("encodeRows", Napi::Function::New<guarded_function<encode>>(env, "encodeRows"));
  exports.Set("decodeRows", Napi::Function::New<guarded_function<decode>>(env, "decodeRows"));
}

}  // namespace tapline
