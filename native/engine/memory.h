#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/options.h"

namespace tapline {

/// What a model and its context would take on one device, and what is there. Bytes.
struct DeviceMemory {
  std::string name;
  bool host = false;  // the machine's own memory
  size_t free = 0;
  size_t total = 0;
  size_t weights = 0;
  size_t context = 0;  // K/V cache, or the state of a recurrent model
  size_t compute = 0;  // buffers of the largest graph
};

/// Lays a model and its context out as llama.cpp would, without allocating either, and adds up what they
/// take. Reads the file's header only. Throws kModelLoad when the file cannot be read as a model.
std::vector<DeviceMemory> estimate_memory(const EngineOptions& options);

}  // namespace tapline
