#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/live_request.h"
#include "llama.h"
#include "server-common.h"

namespace tapline {

/// Writes what a live request saw and did into its answer, at `choices[0].tapline` of each completion.
class LiveAnswer {
 public:
  LiveAnswer(std::shared_ptr<LiveRequest> request, const llama_vocab* vocab);

  /// One sentence when the request has failed; its answer ends with it.
  std::string failure() const { return request_->failure(); }

  /// Adds the readings of the tokens that were generated since the last call, up to `decoded` of them, to the
  /// last of these chunks that has a choice. Where none has, they wait for the next.
  void add_tokens(json& chunks, size_t index, int decoded, const std::vector<llama_token>& last);

  /// Adds what is left, what the interventions did, and why the answer ended, to the last answer or chunk.
  void finish(json& answer, size_t index, int decoded, const std::vector<llama_token>& all);

  /// The rows that finished completions have kept since the last call.
  std::vector<LiveStates> take_states() { return std::exchange(states_, {}); }

 private:
  json keep_states(LiveTrack& track, size_t index, int decoded);
  json tokens(size_t index, int from, int to, const std::vector<llama_token>& last) const;
  json prompt(LiveTrack& track) const;
  json interventions(const std::vector<EditEffect>& effects) const;
  json reading(const LiveReading& row) const;
  std::string piece(llama_token token) const;

  std::shared_ptr<LiveRequest> request_;
  const llama_vocab* vocab_;
  std::vector<int> reported_;  // tokens told, by result index
  std::vector<LiveStates> states_;
};

}  // namespace tapline
