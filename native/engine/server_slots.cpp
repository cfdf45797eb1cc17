#include "engine/server_slots.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/reveal.h"
#include "engine/slot_memory.h"
#include "llama.h"
#include "server-queue.h"

// llama-server's scheduler, compiled here a second time to distinguish its decode from others: the linker
// then omits the library's object. Drafts and images decode in other files. During a decode, the queue's
// thread reads the slots, so changes of slots are written after it, before the scheduler samples.
static int32_t decode_through_hook(llama_context* ctx, llama_batch batch);
static void settle_through_hook(llama_context* ctx);
#if TAPLINE_LLAMA_CPP >= 600
#include "llama-batch.h"
static int32_t decode_through_hook(llama_context* ctx, llama_batch_ext* batch);
#define llama_process(ctx, type, batch) decode_through_hook(ctx, batch)
#else
#define llama_decode decode_through_hook
#endif
#define yield_to_queue(...) yield_to_queue(__VA_ARGS__), settle_through_hook(ctx_tgt)
#include "server-context.cpp"
#undef yield_to_queue
#undef llama_decode
#undef llama_process

namespace tapline {

// Not in the anonymous namespace: an explicit instantiation belongs to its template's namespace.
struct SlotsKey {
  using Member = std::vector<server_slot> server_context_impl::*;
  friend Member reveal(SlotsKey);
};
template struct Reveal<SlotsKey, &server_context_impl::slots>;
struct NewTaskKey {
  using Member = std::function<bool(server_task&&, bool)> server_queue::*;
  friend Member reveal(NewTaskKey);
};
template struct Reveal<NewTaskKey, &server_queue::callback_new_task>;

namespace {

/// Hooks by context: several engines may serve in one process.
std::mutex hooks_mutex;
std::unordered_map<const llama_context*, ServerSlots*> hooks;

ServerSlots* hook_of(const llama_context* ctx) {
  const std::lock_guard<std::mutex> lock(hooks_mutex);
  const auto found = hooks.find(ctx);
  return found == hooks.end() ? nullptr : found->second;
}

std::vector<server_slot>& slots_of(server_context& server) {
  return (*server.impl).*reveal(SlotsKey());
}

/// The idle slot that a task should take: the one with the most busy neighbours, of several the one unused
/// for longest. Null if all are busy.
server_slot* wanted_slot(std::vector<server_slot>& slots, const server_task& task) {
  const auto busy = [&slots](size_t at) { return at < slots.size() && slots[at].is_processing(); };
  const auto rank = [&busy](const server_slot& slot) {
    const auto at = static_cast<size_t>(slot.id);
    const int neighbours = (at > 0 && busy(at - 1) ? 1 : 0) + (busy(at + 1) ? 1 : 0);
    return std::make_pair(-neighbours, slot.t_last_used);
  };
  server_slot* best = nullptr;
  for (server_slot& slot : slots) {
    if (slot.is_processing()) continue;
    // The scheduler gives the further choices of a prompt the first idle slots.
    if (task.is_parent()) return &slot;
    if (best == nullptr || rank(slot) <= rank(*best)) best = &slot;
  }
  return best;
}

}  // namespace

void keep_slots_together(server_context& server) {
  server_queue& queue = server.get_response_reader().queue_tasks;
  queue.on_new_task([&server, handle = queue.*reveal(NewTaskKey())](server_task&& task, bool yielding) {
    server_slot* const wanted = yielding ? nullptr : wanted_slot(slots_of(server), task);
    if (wanted == nullptr) return handle(std::move(task), yielding);
    // The scheduler takes the least recently used slot, and uses this time for nothing else.
    constexpr int64_t kOldest = std::numeric_limits<int64_t>::min();
    const int64_t last_used = std::exchange(wanted->t_last_used, kOldest);
    const bool handled = handle(std::move(task), yielding);
    if (wanted->t_last_used == kOldest) wanted->t_last_used = last_used;
    return handled;
  });
}

ServerSlots::ServerSlots(server_context& server) : server_(server), context_(server.get_llama_context()) {
  for (server_slot& slot : slots_of(server_)) {
    slot.callback_on_reset = [this, before = std::move(slot.callback_on_reset)](const server_slot& ending) {
      before(ending);
      if (reset_ && ending.task) reset_(ending.id, ending.task->id);
      if (spoilt_) wipe(ending.id);
    };
  }
  const std::lock_guard<std::mutex> lock(hooks_mutex);
  hooks[context_] = this;
}

ServerSlots::~ServerSlots() {
  const std::lock_guard<std::mutex> lock(hooks_mutex);
  const auto found = hooks.find(context_);
  // A new context may have the same address.
  if (found != hooks.end() && found->second == this) hooks.erase(found);
}

int ServerSlots::count() const {
  return static_cast<int>(slots_of(server_).size());
}

ServerSlots::Task ServerSlots::task(int slot) const {
  const server_slot& found = slots_of(server_)[static_cast<size_t>(slot)];
  if (!found.task) return {};
  return {found.task->id, found.task->id_parent};
}

llama_token ServerSlots::token(int slot, size_t index) const {
  return slots_of(server_)[static_cast<size_t>(slot)].prompt.tokens[index];
}

int ServerSlots::decode(llama_context* ctx, llama_batch batch) {
  constexpr int kNoRoom = 1;  // the server tries again with fewer tokens; nothing was computed
  stopping_.clear();
  spoilt_ = true;  // unless it completes
  const int status = decode_ ? decode_(ctx, batch) : llama_decode(ctx, batch);
  if (status == 0 && observer_) observer_(ctx, batch);
  spoilt_ = status != 0 && status != kNoRoom;
  return status;
}

void ServerSlots::settle() {
  for (const int slot : stopping_) {
    server_slot& found = slots_of(server_)[static_cast<size_t>(slot)];
    found.n_predict_max = static_cast<int32_t>(found.stats.n_gen) + 1;
  }
  stopping_.clear();
}

void ServerSlots::cut(int slot, int first) {
  server_slot& found = slots_of(server_)[static_cast<size_t>(slot)];
  if (first >= found.prompt.n_tokens()) return;
  const bool removed =
      first > 0 && llama_memory_seq_rm(llama_get_memory(found.ctx_tgt), slot, first, -1) &&
      (found.ctx_dft == nullptr || llama_memory_seq_rm(llama_get_memory(found.ctx_dft), slot, first, -1));
  if (!removed) {
    found.prompt_clear();
    return;
  }
  found.prompt.tokens.keep_first(static_cast<size_t>(first));
  found.prompt.checkpoints.remove_if([first](const auto& checkpoint) { return checkpoint.n_tokens > first; });
}

void ServerSlots::wipe(int slot) {
  server_slot& found = slots_of(server_)[static_cast<size_t>(slot)];
  found.prompt_clear();
  wipe_sequence(llama_get_memory(found.ctx_tgt), slot);
}

void ServerSlots::stop_after_next_token(int slot) {
  stopping_.push_back(slot);
}

}  // namespace tapline

static int32_t decode_through_hook(llama_context* ctx, llama_batch batch) {
  tapline::ServerSlots* const slots = tapline::hook_of(ctx);
  return slots != nullptr ? slots->decode(ctx, batch) : llama_decode(ctx, batch);
}

#if TAPLINE_LLAMA_CPP >= 600
/// Converts a batch of tokens to a llama_batch, by which live requests are planned. Batches with embeddings
/// or states (images, drafts) never contain rows of live requests.
static int32_t decode_through_hook(llama_context* ctx, llama_batch_ext* batch) {
  const auto plain = [](const llama_batch_ext::token& each) {
    return each.id >= 0 && !each.has_embd && !each.has_state && each.seq_ids.size() == 1 &&
           each.decision_order == 0;
  };
  if (tapline::hook_of(ctx) == nullptr || !std::all_of(batch->tokens.begin(), batch->tokens.end(), plain))
    return llama_process(ctx, LLAMA_PROCESS_TYPE_DECODE, batch);
  const size_t count = batch->tokens.size();
  std::vector<llama_token> tokens(count);
  std::vector<llama_pos> positions(count);
  std::vector<int32_t> ones(count, 1);
  std::vector<llama_seq_id> sequences(count);
  std::vector<llama_seq_id*> of_sequences(count);
  std::vector<int8_t> outputs(count);
  for (size_t i = 0; i < count; ++i) {
    const llama_batch_ext::token& each = batch->tokens[i];
    tokens[i] = each.id;
    positions[i] = each.pos[0];
    sequences[i] = *each.seq_ids.begin();
    of_sequences[i] = &sequences[i];
    outputs[i] = each.output ? 1 : 0;
  }
  return decode_through_hook(
      ctx, llama_batch{static_cast<int32_t>(count), tokens.data(), nullptr, positions.data(), ones.data(),
                       of_sequences.data(), outputs.data()});
}
#endif

static void settle_through_hook(llama_context* ctx) {
  if (tapline::ServerSlots* const slots = tapline::hook_of(ctx)) slots->settle();
}
