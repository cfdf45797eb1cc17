// Runs parallel regions on native/openmp/team.cpp by the functions that clang calls, and counts wrong results: threads
// write, meet at a barrier and read what the others wrote. `tapline-teams ROUNDS`.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

constexpr int kPhases = 8;

struct Shared {
  int size = 0;
  std::vector<long> values;
  std::vector<int> numbers;
  int single = 0;
  std::atomic<int> wrong = 0;
};

extern "C" {
int omp_get_num_threads();
int omp_get_thread_num();
int __kmpc_single(void*, int);
void __kmpc_end_single(void*, int);
void __kmpc_barrier(void*, int);
void __kmpc_push_num_threads(void*, int, int);
void __kmpc_fork_call(void*, int, void (*)(int*, int*, Shared*, long*), ...);
}

namespace {

void region(int* number, int*, Shared* shared, long* base) {
  const int own = *number;
  if (own != omp_get_thread_num() || omp_get_num_threads() != shared->size) ++shared->wrong;
  shared->numbers[own] = own;
  if (__kmpc_single(nullptr, own) != 0) {
    ++shared->single;
    __kmpc_end_single(nullptr, own);
  }
  __kmpc_barrier(nullptr, own);
  if (shared->single != 1) ++shared->wrong;
  for (int phase = 0; phase < kPhases; ++phase) {
    shared->values[own] = *base + phase * 100 + own;
    __kmpc_barrier(nullptr, own);
    long sum = 0;
    for (const long value : shared->values) sum += value;
    const long n = shared->size;
    if (sum != n * (*base + phase * 100) + n * (n - 1) / 2) ++shared->wrong;
    __kmpc_barrier(nullptr, own);
  }
}

int rounds_with_sizes(int rounds, long base) {
  int wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    Shared shared;
    shared.size = 1 + (round / 5) % 4;  // a size for five rounds, so that teams are reused and replaced
    shared.values.assign(shared.size, -1);
    shared.numbers.assign(shared.size, -1);
    __kmpc_push_num_threads(nullptr, 0, shared.size);
    __kmpc_fork_call(nullptr, 2, region, &shared, &base);
    for (int i = 0; i < shared.size; ++i) wrong += shared.numbers[i] != i;
    wrong += shared.wrong + (omp_get_num_threads() != 1) + (omp_get_thread_num() != 0);
    ++base;
  }
  return wrong;
}

}  // namespace

int main(int, char** argv) {
  const int rounds = std::atoi(argv[1]);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;  // each has its own team
  for (int i = 0; i < 3; ++i) callers.emplace_back([&, i] { wrong += rounds_with_sizes(rounds, 1000 * i); });
  for (std::thread& caller : callers) caller.join();
  std::printf("{\"regions\": %d, \"wrong\": %d}\n", 3 * rounds, wrong.load());
}
