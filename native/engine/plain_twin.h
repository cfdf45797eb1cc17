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

/// Rows of logits that a twin has compared.
struct TwinCount {
  int64_t rows = 0;
  int64_t with_edits = 0;  // in a batch with rows of a request that edits
  int64_t different = 0;   // by at least a bit
};

/// What a twin has seen, by what the requests wear.
struct TwinReport {
  int64_t batches = 0;
  TwinCount plain;    // no edits: ordinary ones, watching ones, the plain one of a pair
  TwinCount neutral;  // edits that change nothing
  TwinCount edited;
  int64_t lost = 0;   // requests that it could not follow: their cache came from where it cannot see
  std::string first;  // the first row of a plain or neutral request that differed; empty: none
};

/// Decodes each of the server's batches a second time, in a context of its own with the same settings and
/// without anybody's edits, and compares the logits of its rows, bit by bit: what requests that edit do to
/// others.
///
/// Each batch has the same tokens in the same slots, and each slot's cache is cut where the server has cut
/// its own; so whatever a plain row finds in the server's context that an edit left there makes it differ
/// here. A check, which costs as much as the serving does. All but `report` on the generation thread.
class PlainTwin {
 public:
  /// `params` are the server's. Both references outlive this object. Throws kOutOfMemory.
  PlainTwin(ServerSlots& slots, const LiveRegistry& registry, const common_params& params);
  ~PlainTwin();
  PlainTwin(const PlainTwin&) = delete;
  PlainTwin& operator=(const PlainTwin&) = delete;

  TwinReport report() const;

 private:
  enum class EditState : uint8_t { kPlain, kNeutral, kEdits };
  /// What the twin's cache holds of one slot.
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
