#include "model/placement.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "fit.h"

// Of llama.cpp's own llama-model.h, which brings all of its inside along.
const std::vector<std::pair<std::string, ggml_tensor*>>& llama_internal_get_tensor_map(
    const llama_model* model);

namespace tapline {

namespace {

/// Left free on each device: lens, allocator, driver.
constexpr size_t kMargin = 512U << 20U;

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
        throw Error(ErrorCode::kInvalidArgument,
                    "There is no device \"" + name + "\" to hold blocks; " +
                        (all.empty() ? "this machine has none." : "there is " + all + "."));
      }
      devices_.push_back(device);
    }
  }
  devices_.push_back(nullptr);
}

bool Placement::has_devices() const {
  if (!devices_.empty()) return devices_.size() > 1;
  return !device_names().empty();
}

void Placement::fit(const std::string& path, uint32_t n_ctx) {
  if (gpu_layers_ >= 0 || !has_devices()) return;
  static std::mutex mutex;  // llama.cpp's fitting borrows the process's log
  const std::lock_guard<std::mutex> lock(mutex);
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
  if (status != COMMON_PARAMS_FIT_STATUS_SUCCESS) return;  // loading says what is wrong
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
  // The device of each block, or the host where its weights lie on several.
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
