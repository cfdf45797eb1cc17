#pragma once

#include <string>
#include <vector>

#include "llama.h"
#include "napi/setup.h"

namespace tapline {

// Readers of plain option objects. TypeScript has validated everything; these only keep a wrong call from
// crashing: a field of another type reads as the fallback.

inline std::string string_field(const Napi::Object& object, const char* name) {
  const Napi::Value value = object.Get(name);
  return value.IsString() ? value.As<Napi::String>().Utf8Value() : std::string();
}

inline int int_field(const Napi::Object& object, const char* name, int fallback) {
  const Napi::Value value = object.Get(name);
  return value.IsNumber() ? value.As<Napi::Number>().Int32Value() : fallback;
}

inline double number_field(const Napi::Object& object, const char* name, double fallback) {
  const Napi::Value value = object.Get(name);
  return value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : fallback;
}

inline bool bool_field(const Napi::Object& object, const char* name, bool fallback) {
  const Napi::Value value = object.Get(name);
  return value.IsBoolean() ? value.As<Napi::Boolean>().Value() : fallback;
}

/// An array of numbers, or nothing.
inline std::vector<int> int_list_field(const Napi::Object& object, const char* name) {
  std::vector<int> list;
  const Napi::Value value = object.Get(name);
  if (!value.IsArray()) return list;
  const auto array = value.As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); ++i) {
    const Napi::Value item = array.Get(i);
    if (item.IsNumber()) list.push_back(item.As<Napi::Number>().Int32Value());
  }
  return list;
}

/// An array of strings, or nothing.
inline std::vector<std::string> string_list(const Napi::Value& value) {
  std::vector<std::string> list;
  if (!value.IsArray()) return list;
  const auto array = value.As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); ++i) {
    const Napi::Value item = array.Get(i);
    if (item.IsString()) list.push_back(item.As<Napi::String>().Utf8Value());
  }
  return list;
}

inline bool is_int32_array(const Napi::Value& value) {
  return value.IsTypedArray() && value.As<Napi::TypedArray>().TypedArrayType() == napi_int32_array;
}

/// A copy of an Int32Array of token ids; empty for anything else.
inline std::vector<llama_token> token_list(const Napi::Value& value) {
  if (!is_int32_array(value)) return {};
  const auto array = value.As<Napi::Int32Array>();
  return {array.Data(), array.Data() + array.ElementLength()};
}

/// Copies of an array of Int32Arrays.
inline std::vector<std::vector<llama_token>> token_lists(const Napi::Value& value) {
  std::vector<std::vector<llama_token>> lists;
  if (!value.IsArray()) return lists;
  const auto array = value.As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); ++i) lists.push_back(token_list(array.Get(i)));
  return lists;
}

/// A copy of a Float32Array; empty for anything else.
inline std::vector<float> float_list(const Napi::Value& value) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_float32_array) return {};
  const auto array = value.As<Napi::Float32Array>();
  return {array.Data(), array.Data() + array.ElementLength()};
}

/// A copy of a Float64Array; empty for anything else.
inline std::vector<double> double_list(const Napi::Value& value) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_float64_array) return {};
  const auto array = value.As<Napi::Float64Array>();
  return {array.Data(), array.Data() + array.ElementLength()};
}

inline Napi::Value to_js(Napi::Env env, const std::vector<float>& values) {
  Napi::Float32Array array = Napi::Float32Array::New(env, values.size());
  if (!env.IsExceptionPending()) std::copy(values.begin(), values.end(), array.Data());
  return array;
}

inline Napi::Value to_js(Napi::Env env, const std::vector<int32_t>& values) {
  Napi::Int32Array array = Napi::Int32Array::New(env, values.size());
  if (!env.IsExceptionPending()) std::copy(values.begin(), values.end(), array.Data());
  return array;
}

}  // namespace tapline
