#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace tapline::products {

/// A thread's own memory; it grows and stays.
class Scratch {
 public:
  std::byte* at_least(size_t bytes) {
    if (bytes > size_) {
      data_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64})));
      size_ = bytes;
    }
    return data_.get();
  }

 private:
  struct Free {
    void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

}  // namespace tapline::products
