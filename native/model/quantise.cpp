#include "model/quantise.h"

#include "base/error.h"
#include "base/log.h"
#include "base/thread_team.h"
#include "llama.h"
#include "model/model.h"

namespace tapline {

namespace {

/// In the order of Quantisation.
constexpr llama_ftype kFileTypes[] = {LLAMA_FTYPE_MOSTLY_Q8_0, LLAMA_FTYPE_MOSTLY_Q6_K,
                                      LLAMA_FTYPE_MOSTLY_Q5_K_M, LLAMA_FTYPE_MOSTLY_Q4_K_M};

}  // namespace

void quantise(const std::string& from, const std::string& to, Quantisation form, int threads) {
  start_backends();
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.nthread = threads > 0 ? threads : ThreadTeam::default_size();
  params.ftype = kFileTypes[static_cast<size_t>(form)];
  params.allow_requantize = false;
  const ErrorLogScope log;
  if (llama_model_quantize(from.c_str(), to.c_str(), &params) == 0) return;
  const std::string reason = log.first_line();
  throw_error(ErrorCode::kModelLoad, "The model ", from, " cannot be quantised",
              reason.empty() ? "." : ": " + reason + ".");
}

}  // namespace tapline
