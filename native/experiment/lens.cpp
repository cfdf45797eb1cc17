#include "experiment/lens.h"

#include <algorithm>
#include <string>
#include <utility>

#include "experiment/checks.h"

namespace tapline {

std::vector<float> lens_logits(Passes& passes, const std::vector<float>& rows) {
  const auto locked = passes.lock();
  LogitLens& lens = passes.lens();
  const auto width = static_cast<size_t>(passes.info().n_embd);
  if (rows.empty() || rows.size() % width != 0) {
    throw Error(ErrorCode::kInvalidArgument,
                std::to_string(rows.size()) + " values are no rows of " + std::to_string(width) + ".");
  }
  std::vector<float> logits;
  lens.logits(rows.data(), rows.size() / width, logits);
  return logits;
}

std::vector<LensReading> read_lens(Passes& passes, LensRequest request, const CancelToken& cancel) {
  const auto locked = passes.lock();
  LogitLens& lens = passes.lens();
  const auto width = static_cast<size_t>(passes.info().n_embd);
  if (request.places.empty() || request.top < 1)
    throw Error(ErrorCode::kInvalidArgument, "A lens reads at least one place, and its best token.");
  const size_t count = request.places.front().states.size();
  const auto odd = [&](const std::vector<float>& rows) { return rows.size() != count; };
  if (count == 0 || count % width != 0 || (!request.output.empty() && odd(request.output)) ||
      (!request.targets.empty() && request.targets.size() != count / width) ||
      std::any_of(request.places.begin(), request.places.end(),
                  [&](const LensRows& place) { return odd(place.states); })) {
    throw Error(ErrorCode::kInvalidArgument,
                "A lens reads as many rows of " + std::to_string(width) + " values of every place.");
  }
  check_in_vocabulary(passes, "The lens's target", request.targets);
  return lens.read(std::move(request), cancel);
}

}  // namespace tapline
