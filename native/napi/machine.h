#pragma once

#include "napi/setup.h"

namespace tapline {

/// connectRemotes(endpoints) and quantise({ from, to, form, threads }): promises of nothing.
void define_machine(Napi::Env env, Napi::Object exports);

}  // namespace tapline
