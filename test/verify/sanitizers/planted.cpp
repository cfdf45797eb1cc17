// A library that does one thing wrong as soon as it is loaded, which the environment variable PLANTED names: what a
// sanitizer has to report before its silence about the addon means anything.
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

int shared = 0;

__attribute__((constructor)) void do_wrong() {
  const char* planted = std::getenv("PLANTED");
  if (planted == nullptr) return;
  if (std::strcmp(planted, "overflow") == 0) {
    volatile char* block = new char[8];
    volatile int behind = 8;
    block[behind] = 1;
  } else if (std::strcmp(planted, "shift") == 0) {
    volatile int by = 40;
    volatile int result = 1 << by;
    (void)result;
  } else if (std::strcmp(planted, "race") == 0) {
    const auto count = [] {
      for (int i = 0; i < 100'000; ++i) ++shared;
    };
    std::thread first(count);
    std::thread second(count);
    first.join();
    second.join();
  }
}

}  // namespace
