#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tapline {

/// For arrays that are written before they are read.
struct Unwritten {};

/// Asks for large pages: matrices are read in pieces of many pages, whose addresses take long to look up.
inline void prefer_large_pages(unsigned char* memory, size_t bytes) {
#ifdef __linux__
  constexpr size_t kLeast = size_t{4} << 20;
  constexpr std::uintptr_t kPage = 4096;  // the least there is
  if (bytes < kLeast) return;
  const std::uintptr_t from = (reinterpret_cast<std::uintptr_t>(memory) + kPage - 1) / kPage * kPage;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / kPage * kPage;
  ::madvise(reinterpret_cast<void*>(from), end - from, MADV_HUGEPAGE);  // only a hint: it may fail
#else
  (void)memory, (void)bytes;
#endif
}

/// A zeroed array of numbers on a 64-byte boundary: a cache line, and the widest vector register.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(size_t size) : AlignedArray(size, Unwritten{}) {
    std::memset(data_, 0, size * sizeof(T));
  }
  AlignedArray(size_t size, Unwritten) : storage_(new unsigned char[size * sizeof(T) + 63]), size_(size) {
    prefer_large_pages(storage_.get(), size * sizeof(T));
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.get());
    data_ = reinterpret_cast<T*>(storage_.get() + (64 - address % 64) % 64);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

 private:
  std::unique_ptr<unsigned char[]> storage_;
  T* data_ = nullptr;
  size_t size_ = 0;
};

inline int round_up(int value, int multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace tapline
