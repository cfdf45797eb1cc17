// Linked into llama.cpp's own eval-callback example (see CMakeLists.txt). Its logger is leaked on purpose and
// writes from a thread of its own, so what that thread has not written when main() returns is lost: up to 512
// entries, on some machines nearly always. Writing the rest before the process ends changes nothing else.
#include <cstdlib>

#include "log.h"

namespace {

const int registered = std::atexit([] { common_log_flush(common_log_main()); });

}  // namespace
