#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "common.h"
#include "engine/live_registry.h"
#include "engine/server_slots.h"
#include "llama-cpp.h"

namespace tapline {

/// The number of rows of logits that a twin has compared.
struct TwinCount {
  int64_t rows = 0;
  int64_t with_edits = 0;  // in a batch with edited requests
  int64_t different = 0;   // in at least one bit
};

/// The comparisons of a twin, by the edits of the requests.
struct TwinReport {
  int64_t batches = 0;
  TwinCount plain;    // without edits: ordinary requests, readings only, baselines of pairs
  TwinCount neutral;  // edits that change nothing
  TwinCount edited;
  int64_t lost = 0;   // requests that it could not follow, because their cache came from elsewhere
  std::string first;  // the first row of a plain or neutral request that differed; empty: none
};

/// Decodes each of the server's batches again in a second context with the same settings but without edits,
/// and compares logits bit by bit, to detect effects of edits on other requests.
///
/// Each batch has the same tokens in the same slots, and each slot's cache is cut as in the server; so
/// anything that an edit left in the server's context makes a plain row differ here. This check doubles the
/// cost of serving. All but `report` runs on the generation thread.
class PlainTwin {
 public:
  /// `params` are the server's. Both references must outlive this object. Throws kOutOfMemory.
  PlainTwin(ServerSlots& slots, const LiveRegistry& registry, const common_params& params);
  ~PlainTwin();
  PlainTwin(const PlainTwin&) = delete;
  PlainTwin& operator=(const PlainTwin&) = delete;

  TwinReport report() const;

 private:
  enum class EditState : uint8_t { kPlain, kNeutral, kEdits };
  /// The content of the twin's cache for one slot.
  struct Sequence {
    int task = -1;  // that it followed last
    bool lost = false;
    std::vector<llama_token> tokens;
  };

  void mirror(llama_context* served, const llama_batch& batch);
  bool sync_cache(int slot, const ServerSlots::Task& task, size_t first);
  void compare(llama_context* served, const llama_batch& batch);
  EditState edit_state(int task) const;

  ServerSlots& slots_;
  const LiveRegistry& registry_;
  llama_context_ptr context_;
  std::vector<Sequence> sequences_;  // by slot

  mutable std::mutex mutex_;
  TwinReport report_;
};

}  // namespace tapline
