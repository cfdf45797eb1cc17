#include "numbers/product_rate.h"

#include <algorithm>
#include <chrono>

#include "base/thread_team.h"
#include "numbers/aligned_array.h"
#include "numbers/kernels.h"

namespace tapline {

double product_rate(int threads, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr int kDepth = 128;
  constexpr int kRepeats = 200;
  constexpr int kWidth = kPanel<float>;
  ThreadTeam team(threads);
  const double operations = 2.0 * kWidth * kWidth * kDepth * kRepeats * team.size();
  double best = 0;
  for (const auto start = Clock::now();
       std::chrono::duration<double>(Clock::now() - start).count() < seconds;) {
    const auto from = Clock::now();
    team.parallel_for(team.size(), [](int) {
      thread_local AlignedArray<float> a(kDepth * kWidth), b(kDepth * kWidth), c(kWidth * kWidth);
      for (int i = 0; i < kRepeats; ++i)
        panel_kernels<float>().product(a.data(), b.data(), kDepth, c.data(), false);
    });
    best = std::max(best, operations / std::chrono::duration<double>(Clock::now() - from).count());
  }
  return best;
}

}  // namespace tapline
