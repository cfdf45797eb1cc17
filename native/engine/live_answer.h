#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/live_request.h"
#include "llama.h"
#include "server-common.h"

namespace tapline {

/// Writes readings and effects of a live request into its answer, at `choices[0].tapline` of each completion.
class LiveAnswer {
 public:
  LiveAnswer(std::shared_ptr<LiveRequest> request, const llama_vocab* vocab);

  /// The error sentence of a failed request; its answer ends with it.
  std::string failure() const { return request_->failure(); }

  /// Adds the readings of tokens generated since the last call, up to token `decoded`, to the last of these
  /// chunks that has a choice. If none has, they are added to a later one.
  void add_tokens(json& chunks, size_t index, int decoded, const std::vector<llama_token>& last);

  /// Adds the remaining readings, the effects and the reason for the end to the last answer or chunk.
  void finish(json& answer, size_t index, int decoded, const std::vector<llama_token>& all);

  /// The rows that finished completions have saved since the last call.
  std::vector<LiveStates> take_states() { return std::exchange(states_, {}); }

 private:
  static const char* computed(LiveTrack& track);
  json keep_states(LiveTrack& track, size_t index, int decoded);
  json tokens(size_t index, int from, int to, const std::vector<llama_token>& last) const;
  json prompt(LiveTrack& track) const;
  json interventions(const std::vector<EditEffect>& effects) const;
  json reading(const LiveReading& row) const;
  json candidates(const LiveReading& row, size_t first, int count) const;
  std::string piece(llama_token token) const;

  std::shared_ptr<LiveRequest> request_;
  const llama_vocab* vocab_;
  std::vector<int> reported_;  // number of reported tokens by result index
  std::vector<LiveStates> states_;
};

}  // namespace tapline
