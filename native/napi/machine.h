#pragma once

#include "napi/setup.h"

namespace tapline {

/// connectRemotes(endpoints): promise of nothing.
void define_machine(Napi::Env env, Napi::Object exports);

}  // namespace tapline
