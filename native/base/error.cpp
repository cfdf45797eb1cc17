#include "base/error.h"

namespace tapline {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case ErrorCode::kModelLoad:
      return "MODEL_LOAD";
    case ErrorCode::kUnsupportedArchitecture:
      return "UNSUPPORTED_ARCHITECTURE";
    case ErrorCode::kLayerOutOfRange:
      return "LAYER_OUT_OF_RANGE";
    case ErrorCode::kTokenLimit:
      return "TOKEN_LIMIT";
    case ErrorCode::kCancelled:
      return "CANCELLED";
    case ErrorCode::kClosed:
      return "CLOSED";
    case ErrorCode::kOutOfMemory:
      return "OUT_OF_MEMORY";
    case ErrorCode::kCompute:
      return "COMPUTE";
    case ErrorCode::kInternal:
      return "INTERNAL";
  }
  return "INTERNAL";
}

}  // namespace tapline
