#pragma once

#include "dictionaries/dictionary.h"
#include "napi/setup.h"

namespace tapline {

/// Where a dictionary lies, as src/native/dictionary.ts says it.
dictionaries::Layout dictionary_layout(const Napi::Value& given);

/// Encoding with, and decoding by, a sparse dictionary in a file.
void define_dictionaries(Napi::Env env, Napi::Object exports);

}  // namespace tapline
