#pragma once

#include "napi/setup.h"

namespace tapline {

/// Numbers as files hold them.
void define_numbers(Napi::Env env, Napi::Object exports);

}  // namespace tapline
