#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/counted_rows.h"
#include "napi/setup.h"

namespace tapline {

// Writers of plain results, on the JavaScript thread.

template <class Array, class Element>
Napi::Value typed_array(Napi::Env env, const std::vector<Element>& values) {
  Array array = Array::New(env, values.size());
  if (!env.IsExceptionPending()) std::copy(values.begin(), values.end(), array.Data());
  return array;
}

inline Napi::Value to_js(Napi::Env env, const std::vector<float>& values) {
  return typed_array<Napi::Float32Array>(env, values);
}
inline Napi::Value to_js(Napi::Env env, const std::vector<double>& values) {
  return typed_array<Napi::Float64Array>(env, values);
}
inline Napi::Value to_js(Napi::Env env, const std::vector<int32_t>& values) {
  return typed_array<Napi::Int32Array>(env, values);
}
inline Napi::Value to_js(Napi::Env env, const std::vector<uint16_t>& values) {
  return typed_array<Napi::Uint16Array>(env, values);
}
inline Napi::Value to_js(Napi::Env env, const std::vector<uint8_t>& values) {
  return typed_array<Napi::Uint8Array>(env, values);
}

/// An array of write(element) for each element.
template <class List, class Write>
Napi::Array array_of(Napi::Env env, List&& list, const Write& write) {
  Napi::Array array = Napi::Array::New(env, list.size());
  uint32_t at = 0;
  for (auto&& element : list) array.Set(at++, write(element));
  return array;
}

/// Invalid UTF-8 becomes U+FFFD.
inline Napi::Value to_js(Napi::Env env, const std::vector<std::string>& texts) {
  return array_of(env, texts, [&](const std::string& text) { return Napi::String::New(env, text); });
}

/// A number, a string or a JavaScript value.
template <class Value>
Napi::Value to_js(Napi::Env env, const Value& value) {
  if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>) {
    return Napi::Number::New(env, static_cast<double>(value));
  } else {
    return Napi::Value::From(env, value);
  }
}

/// Transfers rows to JavaScript without a copy: they may take hundreds of megabytes. Copies them if the host
/// does not allow external memory (Electron).
template <class Element>
Napi::Value hand_over(Napi::Env env, std::vector<Element>&& values) {
  auto owned = std::make_unique<std::vector<Element>>(std::move(values));
  const auto drop = [](napi_env, void*, void* hint) { delete static_cast<std::vector<Element>*>(hint); };
  napi_value buffer = nullptr;
  const size_t bytes = owned->size() * sizeof(Element);
  if (napi_create_external_arraybuffer(env, owned->data(), bytes, drop, owned.get(), &buffer) != napi_ok)
    return to_js(env, *owned);
  const size_t count = owned.release()->size();
  return Napi::TypedArrayOf<Element>::New(env, count, Napi::ArrayBuffer(env, buffer), 0);
}

inline void set_fields(Napi::Object) {}

/// Sets properties of an object: name, value, name, value …
template <class Value, class... Rest>
void set_fields(Napi::Object object, const char* name, const Value& value, const Rest&... rest) {
  object.Set(name, to_js(object.Env(), value));
  set_fields(object, rest...);
}

inline void set_nonempty(Napi::Object) {}

/// The same, without lists that are empty.
template <class Value, class... Rest>
void set_nonempty(Napi::Object object, const char* name, const Value& value, const Rest&... rest) {
  if (!value.empty()) object.Set(name, to_js(object.Env(), value));
  set_nonempty(object, rest...);
}

template <class... Fields>
Napi::Object object_of(Napi::Env env, const Fields&... fields) {
  Napi::Object object = Napi::Object::New(env);
  set_fields(object, fields...);
  return object;
}

inline Napi::Value to_js(Napi::Env env, const ExcludedRows& excluded) {
  return object_of(env, "bos", excluded.bos, "outliers", excluded.outliers);
}

}  // namespace tapline
