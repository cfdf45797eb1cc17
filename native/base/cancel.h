#pragma once

#include <atomic>
#include <memory>

#include "base/error.h"

namespace tapline {

/// A flag shared between a working thread and the one that may stop it. Copies share it.
class CancelToken {
 public:
  CancelToken() : flag_(std::make_shared<std::atomic<bool>>(false)) {}

  void cancel() { flag_->store(true, std::memory_order_relaxed); }
  bool cancelled() const { return flag_->load(std::memory_order_relaxed); }

  /// Throws kCancelled once cancel() was called.
  void check() const {
    if (cancelled()) throw Error(ErrorCode::kCancelled, "The operation was cancelled.");
  }

  std::shared_ptr<std::atomic<bool>> flag() const { return flag_; }

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
};

}  // namespace tapline
