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

}  // namespace tapline
