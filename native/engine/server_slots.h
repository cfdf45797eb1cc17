#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "llama.h"

struct server_context;

namespace tapline {

/// Access to llama-server's scheduler for live requests: the task of a slot, its decode, and the cache that a
/// finished task leaves. All of it on the generation thread.
///
/// server_slots.cpp includes llama-server's scheduler with `llama_decode` renamed, so that every decode of
/// the serving context passes through `set_decode`. After a decode that failed or threw, a cache may lack
/// tokens that its slot lists. llama-server then ends every slot's answer, and each slot is wiped when its
/// task ends.
class ServerSlots {
 public:
  struct Task {
    int id = -1;      // -1: the slot is idle
    int parent = -1;  // of further completions of one prompt: the task that computes the prompt
  };
  using Decode = std::function<int(llama_context*, llama_batch)>;
  using Reset = std::function<void(int slot, int task)>;
  using Observer = std::function<void(llama_context*, const llama_batch&)>;

  /// Call once, after the model is loaded. The server's slots call this object until the server is destroyed.
  explicit ServerSlots(server_context& server);
  ~ServerSlots();
  ServerSlots(const ServerSlots&) = delete;
  ServerSlots& operator=(const ServerSlots&) = delete;

  llama_context* context() const { return context_; }
  int count() const;
  Task task(int slot) const;
  /// The token at `index` in the slot's cache.
  llama_token token(int slot, size_t index) const;

  /// `decode` replaces llama_decode for the serving context, unless it is empty.
  void set_decode(Decode decode) { decode_ = std::move(decode); }

  /// `observer` is called after each batch that the serving context has decoded, unless it is empty.
  void set_observer(Observer observer) { observer_ = std::move(observer); }

  /// `reset` is called before a slot releases its task, however that ended.
  void set_reset(Reset reset) { reset_ = std::move(reset); }

  /// Removes tokens from `first` on from the slot's cache. Clears it if the memory cannot be cut there
  /// (recurrent ones).
  void cut(int slot, int first);

  /// Clears the cache and overwrites it with zeros, for numbers that are not finite. can_wipe_sequence() must
  /// know the kind of memory.
  void wipe(int slot);

  /// Ends the slot's answer with the next sampled token. During a decode it takes effect afterwards, because
  /// a different thread reads the slots meanwhile.
  void stop_after_next_token(int slot);

  // For the scheduler's own source.
  int decode(llama_context* ctx, llama_batch batch);
  void settle();

 private:
  server_context& server_;
  llama_context* const context_;  // freed before this object
  std::vector<int> stopping_;     // slots, of the decode under way
  bool spoilt_ = false;           // the last decode has failed
  Decode decode_;
  Observer observer_;
  Reset reset_;
};

/// Makes a request take an idle slot next to busy ones, unless one has the beginning of its prompt. Each slot
/// has separate memory, and llama.cpp computes only neighbouring slots in one pass: four requests in
/// scattered slots are four passes a step. Call once, after the model is loaded.
void keep_slots_together(server_context& server);

}  // namespace tapline
