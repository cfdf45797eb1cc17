#pragma once

#include <string>
#include <vector>

namespace tapline {

/// Adds the devices of llama.cpp's rpc-servers ("host:port") to those that models of this process are spread
/// over. Models opened from then on put their blocks on them, in the order given, each in proportion to its
/// free memory. Devices stay until the process ends; an endpoint that is known already adds nothing.
///
/// llama.cpp ends the process when a server refuses the connection, speaks another version or goes away
/// later: call this from a process that somebody watches, after a look at the server (src/models/rpc.ts).
/// Throws kInvalidArgument for a server without devices.
void connect_remotes(const std::vector<std::string>& endpoints);

}  // namespace tapline
