#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "llama.h"
#include "napi/setup.h"

namespace tapline {

// Readers of plain option objects, for guarded calls. TypeScript has validated everything: an absent field
// reads as the fallback, and one of another type is a fault of ours, told as such.

[[noreturn]] inline void wrong_type(const std::string& what, const char* wanted) {
  throw Error(ErrorCode::kInvalidArgument, "The addon was given " + what + " that is not " + wanted + ".");
}

/// A call's one argument; an empty object where there is none, so that what is missing is said field by
/// field.
inline Napi::Object options_of(const Napi::CallbackInfo& info) {
  return info[0].IsObject() ? info[0].As<Napi::Object>() : Napi::Object::New(info.Env());
}

inline bool absent(const Napi::Value& value) {
  return value.IsEmpty() || value.IsUndefined() || value.IsNull();
}

inline std::string string_field(const Napi::Object& object, const char* name) {
  const Napi::Value value = object.Get(name);
  if (absent(value)) return {};
  if (!value.IsString()) wrong_type(name, "a string");
  return value.As<Napi::String>().Utf8Value();
}

/// A field that names a value of an enumeration; `names` are in its order.
template <class Enum, size_t N>
Enum name_field(const Napi::Object& object, const char* field, const std::array<const char*, N>& names) {
  const std::string name = string_field(object, field);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) wrong_type(field, "a name that is known");
  return static_cast<Enum>(found - names.begin());
}

/// The same of one that may be absent.
template <class Enum, size_t N>
Enum name_field(const Napi::Object& object, const char* field, const std::array<const char*, N>& names,
                Enum fallback) {
  return absent(object.Get(field)) ? fallback : name_field<Enum>(object, field, names);
}

inline int int_value(const Napi::Value& value, const char* name) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : 0.5;
  const auto whole = static_cast<int64_t>(number >= INT32_MIN && number <= INT32_MAX ? number : 0);
  if (static_cast<double>(whole) != number) wrong_type(name, "an integer of 32 bits");
  return static_cast<int>(whole);
}

inline int int_field(const Napi::Object& object, const char* name, int fallback) {
  const Napi::Value value = object.Get(name);
  return absent(value) ? fallback : int_value(value, name);
}

inline double number_field(const Napi::Object& object, const char* name, double fallback) {
  const Napi::Value value = object.Get(name);
  if (absent(value)) return fallback;
  if (!value.IsNumber()) wrong_type(name, "a number");
  return value.As<Napi::Number>().DoubleValue();
}

inline bool bool_field(const Napi::Object& object, const char* name, bool fallback) {
  const Napi::Value value = object.Get(name);
  if (absent(value)) return fallback;
  if (!value.IsBoolean()) wrong_type(name, "true or false");
  return value.As<Napi::Boolean>().Value();
}

/// Calls read(element) for each element of an array, or never where there is none.
template <class Read>
void each_element(const Napi::Value& value, const char* name, const Read& read) {
  if (absent(value)) return;
  if (!value.IsArray()) wrong_type(name, "an array");
  const auto array = value.As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); ++i) read(array.Get(i));
}

/// The same of an array of objects.
template <class Read>
void each_object(const Napi::Value& value, const char* name, const Read& read) {
  each_element(value, name, [&](const Napi::Value& item) {
    if (!item.IsObject()) wrong_type(std::string("an entry of ") + name, "an object");
    read(item.As<Napi::Object>());
  });
}

/// A field that holds an object, read by read(object), or never where there is none.
template <class Read>
void object_field(const Napi::Object& object, const char* name, const Read& read) {
  const Napi::Value value = object.Get(name);
  if (absent(value)) return;
  if (!value.IsObject()) wrong_type(name, "an object");
  read(value.As<Napi::Object>());
}

/// An array of integers.
inline std::vector<int> int_list_field(const Napi::Object& object, const char* name) {
  std::vector<int> list;
  each_element(object.Get(name), name,
               [&](const Napi::Value& item) { list.push_back(int_value(item, name)); });
  return list;
}

/// The same of numbers that need not be whole.
inline std::vector<float> float_list_field(const Napi::Object& object, const char* name) {
  std::vector<float> list;
  each_element(object.Get(name), name, [&](const Napi::Value& item) {
    if (!item.IsNumber()) wrong_type(name, "numbers");
    list.push_back(item.As<Napi::Number>().FloatValue());
  });
  return list;
}

/// An array of strings, which an error calls `name`.
inline std::vector<std::string> string_list(const Napi::Value& value, const char* name) {
  std::vector<std::string> list;
  each_element(value, name, [&](const Napi::Value& item) {
    if (!item.IsString()) wrong_type(std::string("an entry of ") + name, "a string");
    list.push_back(item.As<Napi::String>().Utf8Value());
  });
  return list;
}

/// A copy of a typed array; nothing where there is none.
template <class Array, class Element>
std::vector<Element> copy_of(const Napi::Value& value, napi_typedarray_type type, const char* name) {
  if (absent(value)) return {};
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != type)
    wrong_type("an array", name);
  const auto array = value.As<Array>();
  return {array.Data(), array.Data() + array.ElementLength()};
}

/// A copy of an Int32Array of token ids.
inline std::vector<llama_token> token_list(const Napi::Value& value) {
  return copy_of<Napi::Int32Array, llama_token>(value, napi_int32_array, "an Int32Array");
}

/// Copies of an array of Int32Arrays.
inline std::vector<std::vector<llama_token>> token_lists(const Napi::Value& value) {
  std::vector<std::vector<llama_token>> lists;
  each_element(value, "token ids", [&](const Napi::Value& item) { lists.push_back(token_list(item)); });
  return lists;
}

inline std::vector<float> float_list(const Napi::Value& value) {
  return copy_of<Napi::Float32Array, float>(value, napi_float32_array, "a Float32Array");
}

inline std::vector<uint8_t> byte_list(const Napi::Value& value) {
  return copy_of<Napi::Uint8Array, uint8_t>(value, napi_uint8_array, "a Uint8Array");
}

inline std::vector<double> double_list(const Napi::Value& value) {
  return copy_of<Napi::Float64Array, double>(value, napi_float64_array, "a Float64Array");
}

}  // namespace tapline
