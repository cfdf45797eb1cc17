#include "model/quantise.h"

#include "base/error.h"
#include "base/log.h"
#include "base/thread_team.h"
#include "llama.h"
#include "model/model.h"

namespace tapline {

namespace {

llama_ftype file_type(Quantisation form) {
  switch (form) {
    case Quantisation::kQ8_0:
      return LLAMA_FTYPE_MOSTLY_Q8_0;
    case Quantisation::kQ6K:
      return LLAMA_FTYPE_MOSTLY_Q6_K;
    case Quantisation::kQ5KM:
      return LLAMA_FTYPE_MOSTLY_Q5_K_M;
    case Quantisation::kQ4KM:
      return LLAMA_FTYPE_MOSTLY_Q4_K_M;
  }
  throw Error(ErrorCode::kInternal, "A quantisation without a name.");
}

}  // namespace

void quantise(const std::string& from, const std::string& to, Quantisation form, int threads) {
  start_backends();
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.nthread = threads > 0 ? threads : ThreadTeam::default_size();
  params.ftype = file_type(form);
  params.allow_requantize = false;
  const ErrorLogScope log;
  if (llama_model_quantize(from.c_str(), to.c_str(), &params) == 0) return;
  const std::string reason = log.first_line();
  throw Error(ErrorCode::kModelLoad, "The model " + from + " cannot be kept in fewer bits" +
                                         (reason.empty() ? "." : ": " + reason + "."));
}

}  // namespace tapline
