#include "napi/numbers.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/counted_rows.h"
#include "base/narrow.h"
#include "napi/args.h"
#include "napi/results.h"
#include "napi/worker.h"

namespace tapline {

namespace {

struct Narrow {
  std::vector<float> values;
  NarrowType type;
  std::vector<uint16_t> narrowed;

  void execute(const CancelToken&) {
    narrowed = narrow(values.data(), values.size(), type);
    std::vector<float>().swap(values);
  }
  Napi::Value result(Napi::Env env) {
    Napi::Uint16Array array = Napi::Uint16Array::New(env, narrowed.size());
    if (!env.IsExceptionPending()) std::copy(narrowed.begin(), narrowed.end(), array.Data());
    return array;
  }
};

Napi::Value narrow_values(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  return run_async(info.Env(), Narrow{float_list(options.Get("values")),
                                      name_field<NarrowType>(options, "type", std::array{"f16", "bf16"}),
                                      {}});
}

/// Of norms, few enough for the thread that asks.
Napi::Value counted_norms(const Napi::CallbackInfo& info) {
  const Napi::Object options = options_of(info);
  const std::vector<uint8_t> counted =
      counted_rows(double_list(options.Get("norms")), static_cast<size_t>(number_field(options, "bos", 0)));
  Napi::Uint8Array array = Napi::Uint8Array::New(info.Env(), counted.size());
  if (!info.Env().IsExceptionPending()) std::copy(counted.begin(), counted.end(), array.Data());
  return array;
}

}  // namespace

void define_numbers(Napi::Env env, Napi::Object exports) {
  exports.Set("narrow", Napi::Function::New<guarded_function<narrow_values>>(env, "narrow"));
  exports.Set("countedRows", Napi::Function::New<guarded_function<counted_norms>>(env, "countedRows"));
}

}  // namespace tapline
