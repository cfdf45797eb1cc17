#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace tapline {

/// Every failure below JavaScript has one of these stable codes (see src/native/error.ts).
enum class ErrorCode {
  kInvalidArgument,
  kModelLoad,
  kUnsupportedArchitecture,
  kLayerOutOfRange,
  kTokenLimit,
  kCancelled,
  kClosed,
  kOutOfMemory,
  kCompute,
  kInternal,
};

/// The code as JavaScript sees it.
inline const char* error_code_name(ErrorCode code) {
  constexpr const char* kNames[] = {"INVALID_ARGUMENT",
                                    "MODEL_LOAD",
                                    "UNSUPPORTED_ARCHITECTURE",
                                    "LAYER_OUT_OF_RANGE",
                                    "TOKEN_LIMIT",
                                    "CANCELLED",
                                    "CLOSED",
                                    "OUT_OF_MEMORY",
                                    "COMPUTE",
                                    "INTERNAL"};
  return kNames[static_cast<size_t>(code)];
}

/// An error with a code and a sentence that says what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

inline const std::string& part_of_sentence(const std::string& part) {
  return part;
}
inline std::string part_of_sentence(const char* part) {
  return part;
}
template <class Number>
std::string part_of_sentence(Number part) {
  return std::to_string(part);
}

/// Throws an Error whose sentence is the concatenation of the texts and numbers.
template <class... Parts>
[[noreturn]] void throw_error(ErrorCode code, const Parts&... parts) {
  throw Error(code, (std::string() + ... + part_of_sentence(parts)));
}

}  // namespace tapline
