#include "model/remote.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "base/error.h"
#include "ggml-backend.h"
#include "ggml-rpc.h"
#include "model/model.h"

namespace tapline {

namespace {

/// llama.cpp ends the process over anything else.
void check_endpoint(const std::string& endpoint) {
  const size_t colon = endpoint.find(':');
  const std::string port = colon == std::string::npos ? "" : endpoint.substr(colon + 1);
  const bool digits = !port.empty() && port.size() <= 5 &&
                      std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (colon == 0 || !digits || std::stoi(port) < 1 || std::stoi(port) > 65535)
    throw_error(ErrorCode::kInvalidArgument, "An rpc-server must be host:port, got \"", endpoint, "\".");
}

}  // namespace

void connect_remotes(const std::vector<std::string>& endpoints) {
  static std::mutex mutex;
  static std::set<std::string> known;
  const std::lock_guard<std::mutex> lock(mutex);
  start_backends();
  for (const std::string& endpoint : endpoints) {
    if (known.count(endpoint) > 0) continue;
    check_endpoint(endpoint);
    const ggml_backend_reg_t server = ggml_backend_rpc_add_server(endpoint.c_str());
    if (server == nullptr)
      throw_error(ErrorCode::kInvalidArgument, "The rpc-server ", endpoint, " has no devices.");
    ggml_backend_register(server);
    known.insert(endpoint);
  }
}

}  // namespace tapline
