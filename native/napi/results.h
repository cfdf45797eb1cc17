#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/counted_rows.h"
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

/// Rows that are JavaScript's from here on: no copy, so that what may be hundreds of megabytes is there once.
/// Where the host allows no memory of others (Electron), a copy.
inline Napi::Value hand_over(Napi::Env env, std::vector<float>&& values) {
  auto owned = std::make_unique<std::vector<float>>(std::move(values));
  const auto drop = [](napi_env, void*, void* hint) { delete static_cast<std::vector<float>*>(hint); };
  napi_value buffer = nullptr;
  const size_t bytes = owned->size() * sizeof(float);
  if (napi_create_external_arraybuffer(env, owned->data(), bytes, drop, owned.get(), &buffer) != napi_ok)
    return to_js(env, *owned);
  const size_t count = owned.release()->size();
  return Napi::Float32Array::New(env, count, Napi::ArrayBuffer(env, buffer), 0);
}

/// An array of make(0) ... make(count - 1): objects, numbers or strings.
template <class Make>
Napi::Array array_of(Napi::Env env, size_t count, const Make& make) {
  Napi::Array array = Napi::Array::New(env, count);
  for (size_t i = 0; i < count; ++i) array.Set(static_cast<uint32_t>(i), make(i));
  return array;
}

inline Napi::Value excluded_to_js(Napi::Env env, const ExcludedRows& excluded) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("bos", static_cast<double>(excluded.bos));
  object.Set("outliers", static_cast<double>(excluded.outliers));
  return object;
}

/// Bytes that are no UTF-8 by themselves become U+FFFD.
inline Napi::Array to_js(Napi::Env env, const std::vector<std::string>& texts) {
  return array_of(env, texts.size(), [&](size_t i) { return texts[i]; });
}

}  // namespace tapline
