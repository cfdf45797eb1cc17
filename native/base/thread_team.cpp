#include "base/thread_team.h"

#include <algorithm>
#include <system_error>
#include <utility>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace tapline {

namespace {

constexpr uint64_t kTaken = 0xffffffffu;
constexpr int kSpins = 4000;  // some 20 to 50 microseconds, longer than the serial part of a training step

// Spins on the processor, and yields to other threads from time to time.
void pause(int spin) {
  if (spin % 256 == 255) {
    std::this_thread::yield();
    return;
  }
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
  __asm__ __volatile__("yield");
#endif
}

}  // namespace

ThreadTeam::ThreadTeam(int threads) {
  workers_.reserve(static_cast<size_t>(std::max(0, threads - 1)));
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // The system has no more threads: those that started do the work.
  }
}

ThreadTeam::~ThreadTeam() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

int ThreadTeam::default_size() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 16);
}

void ThreadTeam::parallel_for(int count, const std::function<void(int)>& body) {
  if (count <= 0) return;
  if (workers_.empty() || count == 1) {
    for (int i = 0; i < count; ++i) body(i);
    return;
  }
  body_ = &body;
  count_ = count;
  unfinished_.store(count, std::memory_order_relaxed);
  const uint64_t loop = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  ticket_.store(loop << 32 | static_cast<uint64_t>(count));  // sequentially consistent, as sleepers_ below
  if (sleepers_.load() > 0) {
    std::lock_guard<std::mutex> lock(mutex_);
    wake_.notify_all();
  }
  while (run_one()) {
  }
  for (int spin = 0; unfinished_.load(std::memory_order_acquire) > 0; ++spin) {
    if (spin > kSpins) {
      std::this_thread::yield();
    } else {
      pause(spin);
    }
  }
  if (!failure_) return;
  failed_.clear();
  std::rethrow_exception(std::exchange(failure_, nullptr));
}

// Takes one index and runs it; false if none is left.
bool ThreadTeam::run_one() {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  do {
    if ((ticket & kTaken) == 0) return false;
  } while (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel));
  // The loop cannot end, nor body_ and count_ change, before this index is finished.
  const int index = count_ - static_cast<int>(ticket & kTaken);
  try {
    (*body_)(index);
  } catch (...) {
    if (!failed_.test_and_set()) failure_ = std::current_exception();
  }
  unfinished_.fetch_sub(1, std::memory_order_release);
  return true;
}

void ThreadTeam::work() {
  for (;;) {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (run_one()) spin = 0;
      if (stopping_.load(std::memory_order_relaxed)) return;
      pause(spin);
    }
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers_.fetch_add(1);
    wake_.wait(lock, [this] { return stopping_ || (ticket_.load() & kTaken) != 0; });
    sleepers_.fetch_sub(1);
    if (stopping_) return;
  }
}

}  // namespace tapline
