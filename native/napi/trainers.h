#pragma once

#include "napi/setup.h"

namespace tapline {

/// Adds trainProbe, trainSae, initialSaeWeights, trainKernels and productRate to the module.
void define_trainers(Napi::Env env, Napi::Object exports);

}  // namespace tapline
