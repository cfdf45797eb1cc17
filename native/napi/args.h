#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "napi/setup.h"

namespace tapline {

// Readers of plain option objects, for guarded calls. TypeScript has validated everything: an absent field
// leaves the default, and a field of another type is a bug in our own code, which is reported as such.

/// A call from JavaScript. Its options are its first argument, or empty, so that missing ones are reported
/// field by field.
struct Call {
  explicit Call(const Napi::CallbackInfo& given)
      : info(given),
        env(given.Env()),
        options(given[0].IsObject() ? given[0].As<Napi::Object>() : Napi::Object::New(given.Env())) {}

  const Napi::CallbackInfo& info;
  Napi::Env env;
  Napi::Object options;
};

[[noreturn]] inline void wrong_type(const std::string& what, const char* wanted) {
  throw_error(ErrorCode::kInvalidArgument, "The addon expected ", what, " to be ", wanted, ".");
}

inline bool absent(const Napi::Value& value) {
  return value.IsEmpty() || value.IsUndefined() || value.IsNull();
}

/// An index into `names`, which are in the order of an enumeration.
template <class Enum, size_t N>
Enum named(const Napi::Value& value, const char* what, const std::array<const char*, N>& names) {
  const std::string name = value.IsString() ? value.As<Napi::String>().Utf8Value() : std::string();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) wrong_type(what, "a known name");
  return static_cast<Enum>(found - names.begin());
}

template <class Enum, size_t N>
Enum name_field(const Napi::Object& object, const char* field, const std::array<const char*, N>& names,
                std::optional<Enum> fallback = std::nullopt) {
  const Napi::Value value = object.Get(field);
  return fallback && absent(value) ? *fallback : named<Enum>(value, field, names);
}

/// Calls read(element) for each element of an array, or never if it is absent.
template <class Read>
void each_element(const Napi::Value& value, const char* name, const Read& read) {
  if (absent(value)) return;
  if (!value.IsArray()) wrong_type(name, "an array");
  const auto array = value.As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); ++i) read(array.Get(i));
}

template <class Read>
void each_object(const Napi::Value& value, const char* name, const Read& read) {
  each_element(value, name, [&](const Napi::Value& item) {
    if (!item.IsObject()) wrong_type(std::string("each entry of ") + name, "an object");
    read(item.As<Napi::Object>());
  });
}

/// Calls read(object) for a field that is an object, or never if it is absent.
template <class Read>
void object_field(const Napi::Object& object, const char* name, const Read& read) {
  const Napi::Value value = object.Get(name);
  if (absent(value)) return;
  if (!value.IsObject()) wrong_type(name, "an object");
  read(value.As<Napi::Object>());
}

inline void read_value(const Napi::Value& value, const char* name, std::string& to) {
  if (!value.IsString()) wrong_type(name, "a string");
  to = value.As<Napi::String>().Utf8Value();
}

inline void read_value(const Napi::Value& value, const char* name, bool& to) {
  if (!value.IsBoolean()) wrong_type(name, "true or false");
  to = value.As<Napi::Boolean>().Value();
}

inline void read_value(const Napi::Value& value, const char* name, double& to) {
  if (!value.IsNumber()) wrong_type(name, "a number");
  to = value.As<Napi::Number>().DoubleValue();
}

inline void read_value(const Napi::Value& value, const char* name, float& to) {
  double number = 0;
  read_value(value, name, number);
  to = static_cast<float>(number);
}

inline void read_value(const Napi::Value& value, const char* name, int32_t& to) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : 0.5;
  const auto whole = static_cast<int64_t>(number >= INT32_MIN && number <= INT32_MAX ? number : 0);
  if (static_cast<double>(whole) != number) wrong_type(name, "an integer of 32 bits");
  to = static_cast<int32_t>(whole);
}

inline void read_value(const Napi::Value& value, const char* name, uint32_t& to) {
  int32_t number = 0;
  read_value(value, name, number);
  to = static_cast<uint32_t>(number);
}

/// A count, up to what a double represents exactly.
template <class Count, std::enable_if_t<std::is_integral_v<Count> && sizeof(Count) == 8, int> = 0>
void read_value(const Napi::Value& value, const char* name, Count& to) {
  double number = 0;
  read_value(value, name, number);
  if (!(number >= 0 && number <= 9e15) || number != std::floor(number)) wrong_type(name, "a count");
  to = static_cast<Count>(number);
}

template <class Array, class Element>
bool read_typed(const Napi::Value& value, napi_typedarray_type type, std::vector<Element>& to) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != type) return false;
  const auto array = value.As<Array>();
  to.assign(array.Data(), array.Data() + array.ElementLength());
  return true;
}

inline void read_value(const Napi::Value& value, const char* name, std::vector<double>& to) {
  if (!read_typed<Napi::Float64Array>(value, napi_float64_array, to)) wrong_type(name, "a Float64Array");
}

inline void read_value(const Napi::Value& value, const char* name, std::vector<uint8_t>& to) {
  if (!read_typed<Napi::Uint8Array>(value, napi_uint8_array, to)) wrong_type(name, "a Uint8Array");
}

template <class Element>
void read_value(const Napi::Value& value, const char* name, std::vector<Element>& to);

/// A Float32Array, or a short array of numbers.
inline void read_value(const Napi::Value& value, const char* name, std::vector<float>& to) {
  if (!read_typed<Napi::Float32Array>(value, napi_float32_array, to)) read_value<float>(value, name, to);
}

/// An Int32Array, or a short array of integers.
inline void read_value(const Napi::Value& value, const char* name, std::vector<int32_t>& to) {
  if (!read_typed<Napi::Int32Array>(value, napi_int32_array, to)) read_value<int32_t>(value, name, to);
}

/// An array of strings, or of arrays.
template <class Element>
void read_value(const Napi::Value& value, const char* name, std::vector<Element>& to) {
  to.clear();
  each_element(value, name, [&](const Napi::Value& item) { read_value(item, name, to.emplace_back()); });
}

template <class T>
void read_value(const Napi::Value& value, const char* name, std::optional<T>& to) {
  read_value(value, name, to.emplace());
}

inline void read_fields(const Napi::Object&) {}

/// Reads fields into variables: name, variable, name, variable … An absent field leaves its variable.
template <class T, class... Rest>
void read_fields(const Napi::Object& object, const char* name, T& to, Rest&... rest) {
  const Napi::Value value = object.Get(name);
  if (!absent(value)) read_value(value, name, to);
  read_fields(object, rest...);
}

/// One field.
template <class T>
T field(const Napi::Object& object, const char* name, T fallback = {}) {
  read_fields(object, name, fallback);
  return fallback;
}

}  // namespace tapline
