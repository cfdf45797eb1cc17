#pragma once

#include <string>
#include <utility>
#include <vector>

#include "llama.h"

// All tensors of a model by name. llama-model.h declares it, but includes all of llama.cpp's internals.
const std::vector<std::pair<std::string, ggml_tensor*>>& llama_internal_get_tensor_map(
    const llama_model* model);
