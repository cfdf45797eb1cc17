#include "base/log.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "llama.h"

namespace tapline {

namespace {

thread_local ErrorLogScope* current_scope = nullptr;

/// TAPLINE_LLAMA_LOG=1 passes llama.cpp's log on to stderr, for debugging.
bool log_to_stderr() {
  static const bool wanted = [] {
    const char* value = std::getenv("TAPLINE_LLAMA_LOG");
    return value != nullptr && value[0] != '\0' && value[0] != '0';
  }();
  return wanted;
}

}  // namespace

void record_error_line(const char* text) {
  if (current_scope == nullptr) return;
  std::string line(text);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  if (!line.empty()) current_scope->lines_.push_back(line);
}

namespace {

void sink(ggml_log_level level, const char* text, void*) {
  if (level == GGML_LOG_LEVEL_ERROR) record_error_line(text);
  if (log_to_stderr()) std::fputs(text, stderr);
}

}  // namespace

void install_log_sink() {
  static std::once_flag once;
  std::call_once(once, [] { llama_log_set(sink, nullptr); });
}

std::mutex& log_swap_mutex() {
  static std::mutex mutex;
  return mutex;
}

ErrorLogScope::ErrorLogScope() : previous_(current_scope) {
  current_scope = this;
}
ErrorLogScope::~ErrorLogScope() {
  current_scope = previous_;
}

std::string ErrorLogScope::first_line() const {
  if (lines_.empty()) return {};
  const std::string& line = lines_.front();
  // llama.cpp writes "function_name: message"; users do not need the function.
  const size_t colon = line.find(": ");
  const bool prefixed = colon != std::string::npos && line.find(' ') > colon;
  return prefixed ? line.substr(colon + 2) : line;
}

}  // namespace tapline
