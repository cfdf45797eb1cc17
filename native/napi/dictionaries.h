#pragma once

#include "napi/setup.h"

namespace tapline {

/// Encoding with, and decoding by, a sparse dictionary in a file.
void define_dictionaries(Napi::Env env, Napi::Object exports);

}  // namespace tapline
