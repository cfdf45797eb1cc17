#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "napi/setup.h"

namespace tapline {

// Writers of plain results, on the JavaScript thread.

inline Napi::Value to_js(Napi::Env env, const std::vector<float>& values) {
  Napi::Float32Array array = Napi::Float32Array::New(env, values.size());
  if (!env.IsExceptionPending()) std::copy(values.begin(), values.end(), array.Data());
  return array;
}

inline Napi::Value to_js(Napi::Env env, const std::vector<double>& values) {
  Napi::Float64Array array = Napi::Float64Array::New(env, values.size());
  if (!env.IsExceptionPending()) std::copy(values.begin(), values.end(), array.Data());
  return array;
}

inline Napi::Value to_js(Napi::Env env, const std::vector<int32_t>& values) {
  Napi::Int32Array array = Napi::Int32Array::New(env, values.size());
  if (!env.IsExceptionPending()) std::copy(values.begin(), values.end(), array.Data());
  return array;
}

/// An array of make(0) ... make(count - 1): objects, numbers or strings.
template <class Make>
Napi::Array array_of(Napi::Env env, size_t count, const Make& make) {
  Napi::Array array = Napi::Array::New(env, count);
  for (size_t i = 0; i < count; ++i) array.Set(static_cast<uint32_t>(i), make(i));
  return array;
}

/// Bytes that are no UTF-8 by themselves become U+FFFD.
inline Napi::Array to_js(Napi::Env env, const std::vector<std::string>& texts) {
  return array_of(env, texts.size(), [&](size_t i) { return texts[i]; });
}

}  // namespace tapline
