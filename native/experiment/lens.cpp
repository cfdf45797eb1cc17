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
  if (rows.empty() || rows.size() % width != 0)
    throw_error(ErrorCode::kInvalidArgument, rows.size(), " values cannot form rows of ", width, ".");
  std::vector<float> logits;
  lens.logits(rows.data(), rows.size() / width, logits);
  return logits;
}

std::vector<LensReading> read_lens(Passes& passes, const GivenRows& given, const CancelToken& cancel) {
  const auto locked = passes.lock();
  LogitLens& lens = passes.lens();
  const auto width = static_cast<size_t>(passes.info().n_embd);
  if (given.places.empty() || given.top < 1)
    throw Error(ErrorCode::kInvalidArgument, "A lens needs at least one place, and a top of at least 1.");
  const size_t count = given.places.front().states.size();
  const auto odd = [&](const std::vector<float>& rows) { return rows.size() != count; };
  if (count == 0 || count % width != 0 || (!given.output.empty() && odd(given.output)) ||
      (!given.targets.empty() && given.targets.size() != count / width) ||
      std::any_of(given.places.begin(), given.places.end(),
                  [&](const GivenRows::Place& place) { return odd(place.states); })) {
    throw_error(ErrorCode::kInvalidArgument, "A lens needs the same number of rows of ", width,
                " values at every place.");
  }
  check_in_vocabulary(passes, "The lens's target", given.targets);
  LensRequest request;
  request.rows = count / width;
  request.output = given.output.empty() ? nullptr : given.output.data();
  request.top = given.top;
  request.targets = given.targets;
  request.entropy = given.entropy;
  for (const GivenRows::Place& place : given.places) {
    request.places.push_back({place.states.data(), place.translator ? &*place.translator : nullptr});
  }
  return lens.read(request, cancel);
}

LogitDirection logit_direction(const Passes& passes, const std::vector<float>& state, llama_token token) {
  const ResidualStream& stream = passes.stream();
  if (!stream.supported) throw Error(ErrorCode::kUnsupportedArchitecture, stream.reason);
  passes.model().check_tokens({token});
  if (state.size() != static_cast<size_t>(passes.info().n_embd))
    throw_error(ErrorCode::kInvalidArgument, "A state must have ", passes.info().n_embd, " values, got ",
                state.size(), ".");
  return logit_direction(stream.lens, state, token);
}

}  // namespace tapline
