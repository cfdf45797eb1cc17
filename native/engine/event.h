#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/live_request.h"

namespace tapline {

using RequestId = uint64_t;

/// How long one answer took, in milliseconds.
struct AnswerTime {
  double prompt = 0;
  double generated = 0;  // from its first token to its last
};

/// The result of one read of a request: the next part of its answer, or why there will be none.
struct Event {
  int status = 0;                  // HTTP status; only in the first event of a request
  std::string content_type;        // only in the first event
  bool stream = false;             // more events follow until `done`
  std::string data;                // the whole body, or the next part of a stream
  std::vector<int> tokens;         // per answer of the request: generated tokens whose text is in `data`
  std::vector<AnswerTime> times;   // per answer in a whole body
  std::vector<LiveStates> states;  // rows saved for the completions that end here
  bool done = false;               // this is the last event

  bool failed = false;  // the request ended without an answer: cancelled or closed
  ErrorCode code = ErrorCode::kInternal;
  std::string sentence;
};

inline Event failed_event(ErrorCode code, const std::string& sentence) {
  Event event;
  event.failed = true;
  event.code = code;
  event.sentence = sentence;
  return event;
}

/// Receives events on engine threads. Must not block and must not throw.
using Deliver = std::function<void(RequestId, Event&&)>;

}  // namespace tapline
