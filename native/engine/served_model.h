#pragma once

#include <string>

#include "engine/introspection.h"
#include "server-context.h"

namespace tapline {

/// Throws kModelLoad if several requests in one batch would abort the process: for minimax-01 llama.cpp
/// v0.5.0 then multiplies in four dimensions, which repacked weights do not support.
void check_slots(const llama_model* model, const std::string& path, int slots);

/// What is served, as JSON text: id, architecture, sizes, slots, what the chat template supports.
std::string describe_served(const server_context_meta& meta, const llama_model* model,
                            const common_params& params, const Introspection& introspection);

}  // namespace tapline
