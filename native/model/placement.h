#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "llama.h"

namespace tapline {

/// Blocks whose weights all lie on one device.
struct DeviceBlocks {
  std::string name;
  std::string description;
  bool host = false;
  int blocks = 0;
};

/// Where a model's blocks go: which devices, and how many of its blocks they hold. Owns what
/// llama_model_params only points to, so it outlives the loading.
class Placement {
 public:
  /// `devices`: their names; empty takes all there are, "none" alone keeps to the processor. Throws
  /// kInvalidArgument for a name that is no device's.
  Placement(const std::vector<std::string>& devices, int gpu_layers);

  /// Lowers what the devices hold until the weights, and a context of `n_ctx` tokens, fit into the memory
  /// that is free now (llama.cpp's own fitting, which also keeps experts apart from their blocks). Does
  /// nothing where a number of blocks was asked for or there is no device. One call at a time in a process.
  void fit(const std::string& path, uint32_t n_ctx);

  /// Writes devices, blocks and shares into `params`.
  void apply(llama_model_params& params);

 private:
  void keep_to_the_processor();

  std::vector<ggml_backend_dev_t> devices_;  // null-terminated; empty: llama.cpp's own choice
  int gpu_layers_;
  std::vector<float> split_;
  std::vector<llama_model_tensor_buft_override> overrides_;
};

/// Devices with their blocks, in the order in which they first hold one. A block whose weights are spread
/// over several (experts kept apart) counts for the host.
std::vector<DeviceBlocks> placed_blocks(const llama_model* model);

}  // namespace tapline
