#include "engine/memory.h"

#include <cstdint>
#include <exception>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "common.h"
#include "fit.h"
#include "ggml-backend.h"
#include "log.h"
#include "model/model.h"

namespace tapline {

std::vector<DeviceMemory> estimate_memory(const EngineOptions& options) {
  const std::lock_guard<std::mutex> lock(log_swap_mutex());
  start_backends();
  common_log_set_verbosity_thold(-1);
  common_params params = engine_params(options);
  const llama_model_params model = common_model_params_to_llama(params);
  const llama_context_params context = common_context_params_to_llama(params);

  const ErrorLogScope log;
  std::vector<ggml_backend_dev_t> devices;
  uint32_t layers = 0;
  uint32_t ctx_train = 0;
  uint32_t experts = 0;
  common_device_memory_data_vec found;
  try {
    found = common_get_device_memory_data(params.model.path.c_str(), &model, &context, devices, layers,
                                          ctx_train, experts, GGML_LOG_LEVEL_ERROR);
  } catch (const std::exception& error) {
    const std::string reason = log.first_line();
    throw_error(ErrorCode::kModelLoad, "The memory of \"", options.path,
                "\" could not be estimated: ", reason.empty() ? error.what() : reason, ".");
  }

  std::vector<DeviceMemory> all;
  for (size_t i = 0; i < found.size(); ++i) {
    const common_device_memory_data& data = found[i];
    const bool host = i == devices.size();  // llama.cpp puts the host last
    all.push_back({host ? "host" : ggml_backend_dev_name(devices[i]), host, static_cast<size_t>(data.free),
                   static_cast<size_t>(data.total), data.model, data.context, data.compute});
  }
  return all;
}

}  // namespace tapline
