#pragma once

#include "experiment/forward.h"
#include "napi/setup.h"

namespace tapline {

// For a context and for a served model.

ForwardRequest forward_request(const Napi::Object& options);
Napi::Object to_js(Napi::Env env, ForwardResult& found);

}  // namespace tapline
