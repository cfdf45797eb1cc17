#pragma once

#include <mutex>
#include <string>
#include <vector>

namespace tapline {

/// Routes llama.cpp's and ggml's log away from stderr, once per process. Call before any model is opened.
void install_log_sink();

/// Locked while llama.cpp may replace the process's log callback with one whose data is on its stack: while
/// it fits a model to devices and while it estimates memory. Two at the same time would restore each other's,
/// and later lines would go to a stack frame that no longer exists.
std::mutex& log_swap_mutex();

/// Collects the error lines that llama.cpp logs on this thread during its lifetime, so that a failure to load
/// is reported with its cause.
class ErrorLogScope {
 public:
  ErrorLogScope();
  ~ErrorLogScope();
  ErrorLogScope(const ErrorLogScope&) = delete;
  ErrorLogScope& operator=(const ErrorLogScope&) = delete;

  /// The first error line without its function prefix, or an empty string.
  std::string first_line() const;

 private:
  friend void record_error_line(const char* text);
  ErrorLogScope* previous_;
  std::vector<std::string> lines_;
};

}  // namespace tapline
