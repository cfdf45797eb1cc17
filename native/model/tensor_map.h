#pragma once

#include <string>
#include <utility>
#include <vector>

#include "llama.h"

// All tensors of a model by name: of llama.cpp's own llama-model.h, which brings all of its inside along.
const std::vector<std::pair<std::string, ggml_tensor*>>& llama_internal_get_tensor_map(
    const llama_model* model);
