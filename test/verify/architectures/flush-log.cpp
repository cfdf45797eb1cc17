// Linked into llama.cpp's own eval-callback example (see CMakeLists.txt). Its logger is leaked on purpose and
// writes from a separate thread, so anything that the thread has not written when main() returns is lost: up to 512
// entries, on some machines nearly always. Writing the rest before the process ends changes nothing else.
//
// Not at once, though: common_log_flush() waits for ever where the queue happens to be full (its closing entry then
// makes the ring look empty), about once in 500 runs. So the writer gets the time to empty it first.
#include <unistd.h>

#include <cstdlib>

#include "log.h"

namespace {

void flush_log() {
  constexpr int pause_us = 50'000;
  off_t before = -1;
  for (off_t now = lseek(STDOUT_FILENO, 0, SEEK_CUR); now != before; now = lseek(STDOUT_FILENO, 0, SEEK_CUR)) {
    before = now;
    usleep(pause_us);
  }
  common_log_flush(common_log_main());
}

const int registered = std::atexit(flush_log);

}  // namespace
