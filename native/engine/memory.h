#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/options.h"

namespace tapline {

/// The memory of one device and the needs of a model and its context, in bytes.
struct DeviceMemory {
  std::string name;
  bool host = false;  // the machine's own memory
  size_t free = 0;
  size_t total = 0;
  size_t weights = 0;
  size_t context = 0;  // K/V cache, or the state of a recurrent model
  size_t compute = 0;  // buffers of the largest graph
};

/// Computes the memory of a model and its context with llama.cpp's layout, without allocating either. Reads
/// only the file's header. Throws kModelLoad if the file cannot be read as a model.
std::vector<DeviceMemory> estimate_memory(const EngineOptions& options);

}  // namespace tapline
