#pragma once

#include <functional>
#include <vector>

#include "llama.h"

struct server_context;

namespace tapline {

/// What a live request needs of llama-server's scheduler: which task a slot works on, its decode, and a say
/// in what a slot keeps of a finished task. All of it on the generation thread.
///
/// The source file behind this header includes llama-server's own scheduler with `llama_decode` renamed, so
/// that every decode of the serving context passes through `set_decode`.
/// After a decode that failed or threw, a cache may lack tokens that its slot lists. llama-server then ends
/// every slot's answer, and each slot is wiped when its task ends.
class ServerSlots {
 public:
  /// What a slot works on.
  struct Task {
    int id = -1;      // -1: the slot is idle
    int parent = -1;  // of further completions of one prompt: the task that computes the prompt
  };
  using Decode = std::function<int(llama_context*, llama_batch)>;
  using Reset = std::function<void(int slot, int task)>;
  using Observer = std::function<void(llama_context*, const llama_batch&)>;

  /// Once, after the model was loaded. The server's slots call this object until the server is gone.
  explicit ServerSlots(server_context& server);
  ~ServerSlots();
  ServerSlots(const ServerSlots&) = delete;
  ServerSlots& operator=(const ServerSlots&) = delete;

  llama_context* context() const { return context_; }
  int count() const;
  Task task(int slot) const;
  /// The token at `index` of what the slot's cache holds.
  llama_token token(int slot, size_t index) const;

  /// `decode` is called in place of llama_decode for the serving context; empty: nothing is.
  void set_decode(Decode decode);

  /// `observer` is called after each batch that the serving context has decoded; empty: nobody is.
  void set_observer(Observer observer);

  /// `reset` is called when a slot is about to forget its task, for whatever reason it ended.
  void set_reset(Reset reset);

  /// Forgets everything that the slot's cache holds from token `first` on. Where a memory cannot be cut
  /// there (recurrent ones), it forgets all of it.
  void cut(int slot, int first);

  /// Forgets all of it, and overwrites what it held with zeros: for numbers that are not finite. The memory
  /// must be of a kind that can_wipe_sequence() knows.
  void wipe(int slot);

  /// Ends the slot's answer with the token that is sampled next. Called during a decode, it takes effect
  /// once that is over: meanwhile another thread reads the slots, to answer questions about them.
  void stop_after_next_token(int slot);

  // For the scheduler's own source.
  int decode(llama_context* ctx, llama_batch batch);
  void settle();

 private:
  server_context& server_;
  llama_context* const context_;  // gone before this object
  std::vector<int> stopping_;     // slots, of the decode under way
  bool spoilt_ = false;           // the last decode has failed
  Decode decode_;
  Observer observer_;
  Reset reset_;
};

}  // namespace tapline
