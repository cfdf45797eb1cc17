#include "model/placement.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "fit.h"
#include "model/tensor_map.h"

namespace tapline {

namespace {

/// Left free on each device for lens, allocator and driver. Devices with less are not used.
constexpr size_t kMargin = 512U << 20U;

size_t free_memory(ggml_backend_dev_t device) {
  size_t free = 0;
  size_t total = 0;
  ggml_backend_dev_memory(device, &free, &total);
  return total == 0 ? SIZE_MAX : free;  // unknown
}

/// llama.cpp's default: remote devices, then GPUs; integrated GPUs if there is nothing else.
std::vector<ggml_backend_dev_t> default_devices() {
  std::vector<ggml_backend_dev_t> remote;
  std::vector<ggml_backend_dev_t> own;
  std::vector<ggml_backend_dev_t> integrated;
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    const ggml_backend_dev_t device = ggml_backend_dev_get(i);
    const auto type = ggml_backend_dev_type(device);
    const bool elsewhere = std::string("RPC") == ggml_backend_reg_name(ggml_backend_dev_backend_reg(device));
    if (type == GGML_BACKEND_DEVICE_TYPE_IGPU) integrated.push_back(device);
    if (type == GGML_BACKEND_DEVICE_TYPE_GPU) (elsewhere ? remote : own).push_back(device);
  }
  remote.insert(remote.end(), own.begin(), own.end());
  return remote.empty() ? integrated : remote;
}

std::string device_names() {
  std::string names;
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    const ggml_backend_dev_t device = ggml_backend_dev_get(i);
    if (ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU) continue;
    names += (names.empty() ? "" : ", ") + std::string(ggml_backend_dev_name(device));
  }
  return names;
}

}  // namespace

Placement::Placement(const std::vector<std::string>& devices, int gpu_layers) : gpu_layers_(gpu_layers) {
  if (devices.empty()) return;
  if (devices.size() > 1 || devices[0] != "none") {
    for (const std::string& name : devices) {
      const ggml_backend_dev_t device = ggml_backend_dev_by_name(name.c_str());
      if (device == nullptr || ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU) {
        const std::string all = device_names();
        throw_error(ErrorCode::kInvalidArgument, "Unknown device \"", name, "\"; ",
                    all.empty() ? "this machine has none for blocks." : "available: " + all + ".");
      }
      devices_.push_back(device);
    }
  }
  devices_.push_back(nullptr);
}

void Placement::keep_to_the_processor() {
  devices_ = {nullptr};
  gpu_layers_ = 0;
}

void Placement::fit(const std::string& path, uint32_t n_ctx) {
  if (gpu_layers_ >= 0) return;
  std::vector<ggml_backend_dev_t> usable = devices_.empty() ? default_devices() : devices_;
  if (!usable.empty() && usable.back() == nullptr) usable.pop_back();
  const size_t all = usable.size();
  usable.erase(std::remove_if(usable.begin(), usable.end(),
                              [](ggml_backend_dev_t device) { return free_memory(device) < kMargin; }),
               usable.end());
  if (all == 0) return;
  if (usable.empty()) return keep_to_the_processor();
  if (usable.size() < all) {
    devices_ = usable;
    devices_.push_back(nullptr);
  }
  const std::lock_guard<std::mutex> lock(log_swap_mutex());
  llama_model_params params = llama_model_default_params();
  if (!devices_.empty()) params.devices = devices_.data();
  llama_context_params context = llama_context_default_params();
  context.n_ctx = n_ctx;
  context.n_batch = std::min(n_ctx, 256U);
  context.n_ubatch = context.n_batch;
  std::vector<float> split(llama_max_devices(), 0.0F);
  std::vector<llama_model_tensor_buft_override> overrides(llama_max_tensor_buft_overrides(),
                                                          {nullptr, nullptr});
  std::vector<size_t> margins(llama_max_devices(), kMargin);
  const auto status = common_fit_params(path.c_str(), &params, &context, split.data(), overrides.data(),
                                        margins.data(), n_ctx, nullptr, GGML_LOG_LEVEL_ERROR);
  if (status == COMMON_PARAMS_FIT_STATUS_FAILURE) return keep_to_the_processor();
  if (status != COMMON_PARAMS_FIT_STATUS_SUCCESS) return;  // loading reports the error
  gpu_layers_ = params.n_gpu_layers;
  if (params.tensor_split != nullptr) split_ = std::move(split);
  if (params.tensor_buft_overrides != nullptr) overrides_ = std::move(overrides);
}

void Placement::apply(llama_model_params& params) {
  params.n_gpu_layers = gpu_layers_;
  if (!devices_.empty()) params.devices = devices_.data();
  if (!split_.empty()) params.tensor_split = split_.data();
  if (!overrides_.empty()) params.tensor_buft_overrides = overrides_.data();
}

std::vector<DeviceBlocks> placed_blocks(const llama_model* model) {
  // The device of each block, or the host if its weights are on several.
  std::map<int, ggml_backend_dev_t> device_of;
  const ggml_backend_dev_t host = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  for (const auto& [name, tensor] : llama_internal_get_tensor_map(model)) {
    int block = 0;
    if (std::sscanf(name.c_str(), "blk.%d.", &block) != 1 || tensor->buffer == nullptr) continue;
    ggml_backend_dev_t device = ggml_backend_buft_get_device(ggml_backend_buffer_get_type(tensor->buffer));
    if (device == nullptr || ggml_backend_buffer_is_host(tensor->buffer)) device = host;
    const auto [at, added] = device_of.emplace(block, device);
    if (!added && at->second != device) at->second = host;
  }
  std::vector<DeviceBlocks> all;
  for (const auto& [block, device] : device_of) {
    const std::string name = ggml_backend_dev_name(device);
    const auto at =
        std::find_if(all.begin(), all.end(), [&](const DeviceBlocks& each) { return each.name == name; });
    if (at != all.end()) {
      ++at->blocks;
    } else {
      all.push_back({name, ggml_backend_dev_description(device), device == host, 1});
    }
  }
  return all;
}

}  // namespace tapline
