// The part of OpenMP that ggml's graphs use, for the portable build. Clang compiles `parallel`, `single` and
// `barrier` to calls of LLVM's runtime, which users would have to install; this file implements those calls.
// As in GCC's runtime, each thread that computes graphs has a team, and waiting threads spin for
// GOMP_SPINCOUNT rounds before they sleep.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

/// A region as clang compiles it. Arguments: the thread's number, twice, and the addresses of shared
/// variables.
constexpr int kMostArguments = 8;
using Region = void (*)(int* number, int* same, void*, void*, void*, void*, void*, void*, void*, void*);

/// Read when the addon is loaded, and shown if OMP_DISPLAY_ENV is "verbose", as by GCC's runtime.
const int kSpinRounds = [] {
  const char* text = std::getenv("GOMP_SPINCOUNT");
  const int rounds = text == nullptr ? 4000 : std::clamp(std::atoi(text), 0, 1'000'000);
  const char* display = std::getenv("OMP_DISPLAY_ENV");
  if (display != nullptr && std::strcmp(display, "verbose") == 0) {
    std::fprintf(stderr, "GOMP_SPINCOUNT = '%d'\n", rounds);
  }
  return rounds;
}();

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

/// Counts turns. A thread waits until the turn that it has seen is over. Waking is skipped while no thread
/// sleeps.
class Turn {
 public:
  unsigned current() const { return turn_.load(std::memory_order_acquire); }

  void next() {
    turn_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) futex(FUTEX_WAKE_PRIVATE, INT_MAX);
  }

  void wait(unsigned seen) {
    for (int left = kSpinRounds; left > 0; --left) {
      if (current() != seen) return;
      relax();
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (turn_.load(std::memory_order_seq_cst) == seen) futex(FUTEX_WAIT_PRIVATE, seen);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  void futex(int operation, unsigned value) {
    syscall(SYS_futex, reinterpret_cast<unsigned*>(&turn_), operation, value, nullptr, nullptr, 0);
  }

  std::atomic<unsigned> turn_ = 0;
  std::atomic<int> sleepers_ = 0;
};
static_assert(sizeof(std::atomic<unsigned>) == sizeof(unsigned), "the futex is the counter itself");

class Team;
/// The running thread's team and number while it is in a region.
thread_local Team* current_team = nullptr;
thread_local int number_in_team = 0;
thread_local int asked_threads = 1;

/// The calling thread (number 0) and its helpers. They live until the caller ends or asks for another size,
/// and all take part in every region.
class Team {
 public:
  explicit Team(int size) {
    for (int number = 1; number < size; ++number) {
      try {
        helpers_.emplace_back([this, number] { help(number); });
      } catch (const std::system_error&) {
        break;  // no more threads available; ggml reads the actual number
      }
    }
  }

  ~Team() {
    region_ = nullptr;
    start_.next();
    for (std::thread& helper : helpers_) helper.join();
  }

  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  void run(Region region, void** arguments) {
    region_ = region;
    arguments_ = arguments;
    start_.next();
    work(0);
  }

  void barrier() {
    const unsigned seen = turn_.current();
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < size()) return turn_.wait(seen);
    arrived_.store(0, std::memory_order_relaxed);
    turn_.next();
  }

 private:
  void help(int number) {
    for (unsigned seen = 0;; ++seen) {
      start_.wait(seen);
      if (region_ == nullptr) return;
      work(number);
    }
  }

  void work(int number) {
    current_team = this;
    number_in_team = number;
    void** a = arguments_;
    region_(&number, &number, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    barrier();
    current_team = nullptr;
    number_in_team = 0;
  }

  Turn start_;
  Turn turn_;
  std::atomic<int> arrived_ = 0;
  Region region_ = nullptr;
  void** arguments_ = nullptr;
  std::vector<std::thread> helpers_;  // last: they use the other members
};

}  // namespace

extern "C" {

int omp_get_num_threads() {
  return current_team == nullptr ? 1 : current_team->size();
}
int omp_get_thread_num() {
  return number_in_team;
}

int __kmpc_global_thread_num(void*) {
  return number_in_team;
}
void __kmpc_push_num_threads(void*, int, int threads) {
  asked_threads = threads;
}

void __kmpc_fork_call(void*, int count, Region region, ...) {
  void* arguments[kMostArguments] = {};
  if (count > kMostArguments) std::abort();  // would fail with the first graph
  va_list list;
  va_start(list, region);
  for (int i = 0; i < count; ++i) arguments[i] = va_arg(list, void*);
  va_end(list);
  thread_local std::unique_ptr<Team> team;
  const int threads = std::max(1, std::exchange(asked_threads, 1));
  if (team == nullptr || team->size() != threads) {
    team.reset();
    team = std::make_unique<Team>(threads);
  }
  team->run(region, arguments);
}

void __kmpc_barrier(void*, int) {
  if (current_team != nullptr) current_team->barrier();
}
int __kmpc_single(void*, int) {
  return number_in_team == 0 ? 1 : 0;
}
void __kmpc_end_single(void*, int) {}
}
