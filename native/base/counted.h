#pragma once

#include <atomic>
#include <cstdint>

namespace tapline {

/// Base of a kind of object whose number tests look at: what must be gone once everything is closed.
template <class Kind>
class Counted {
 public:
  /// How many there are in this process now.
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
