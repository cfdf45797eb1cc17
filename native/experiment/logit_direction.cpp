#include "experiment/logit_direction.h"

#include <string>

#include "base/error.h"

namespace tapline {

LogitDirection logit_direction(const Passes& passes, const std::vector<float>& state, llama_token token) {
  const ResidualStream& stream = passes.stream();
  if (!stream.supported) throw Error(ErrorCode::kUnsupportedArchitecture, stream.reason);
  passes.model().check_tokens({token});
  if (state.size() != static_cast<size_t>(passes.info().n_embd)) {
    throw Error(ErrorCode::kInvalidArgument, "A state has " + std::to_string(passes.info().n_embd) +
                                                 " values, got " + std::to_string(state.size()) + ".");
  }
  return logit_direction(stream.lens, state, token);
}

}  // namespace tapline
