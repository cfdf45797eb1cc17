#pragma once

#include <atomic>
#include <cstdint>

namespace tapline {

/// Base class that counts its objects, for tests: all must be gone once everything is closed.
template <class Kind>
class Counted {
 public:
  /// The number of objects in this process.
  static int64_t alive() { return alive_.load(); }

 protected:
  Counted() { ++alive_; }
  Counted(const Counted&) { ++alive_; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --alive_; }

 private:
  static inline std::atomic<int64_t> alive_{0};
};

}  // namespace tapline
