#pragma once

#include <string>
#include <vector>

namespace tapline {

/// Adds the devices of llama.cpp's rpc-servers ("host:port") to this process. Models that are opened
/// afterwards put their blocks on them, in the order given, in proportion to free memory. Devices stay until
/// the process ends; a known endpoint adds nothing.
///
/// llama.cpp ends the process if a server refuses the connection, has a different version or disappears
/// later: check the server first (src/models/rpc.ts) and call this in a supervised process. Throws
/// kInvalidArgument for a server without devices.
void connect_remotes(const std::vector<std::string>& endpoints);

}  // namespace tapline
