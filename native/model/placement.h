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

/// The devices for a model's blocks and the number of blocks on them. Owns the data that llama_model_params
/// points to, so it must outlive the loading.
class Placement {
 public:
  /// `devices`: names; empty means all, "none" alone means the processor. Throws kInvalidArgument for an
  /// unknown name.
  Placement(const std::vector<std::string>& devices, int gpu_layers);

  /// Reduces the number of blocks until the weights and a context of `n_ctx` tokens fit into free memory
  /// (llama.cpp's fitting, which may separate experts from their blocks). Does nothing if a number of blocks
  /// was requested or there is no device. One call at a time per process.
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

/// Devices with their number of blocks, in the order of their first blocks. A block whose weights are on
/// several devices (separate experts) counts for the host.
std::vector<DeviceBlocks> placed_blocks(const llama_model* model);

}  // namespace tapline
