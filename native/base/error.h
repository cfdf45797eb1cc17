#pragma once

#include <stdexcept>
#include <string>

namespace tapline {

/// Everything that can go wrong below JavaScript, as one of ten stable codes (see src/native/error.ts).
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

/// The code as JavaScript sees it, e.g. "LAYER_OUT_OF_RANGE".
const char* error_code_name(ErrorCode code);

/// An error with a code and one sentence a person can act on.
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

/// Throws an Error whose sentence is the texts and numbers one after the other.
template <class... Parts>
[[noreturn]] void throw_error(ErrorCode code, const Parts&... parts) {
  throw Error(code, (std::string() + ... + part_of_sentence(parts)));
}

}  // namespace tapline
