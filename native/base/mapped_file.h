#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tapline {

/// A file read through memory, so that only the pages that are looked at are loaded and other processes share
/// them.
class MappedFile {
 public:
  /// The path is UTF-8 on every system. Throws kInvalidArgument where the file cannot be opened or is empty.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// `count` floats from byte `offset` on. Throws kInvalidArgument where they do not lie in the file, or not
  /// at a multiple of four.
  const float* floats(double offset, size_t count) const;
  /// The same of numbers of 16 bits, at a multiple of two.
  const uint16_t* halves(double offset, size_t count) const;

  /// Has the system load bytes that are read soon, where it can.
  void expect(double offset, size_t bytes) const;

 private:
  const unsigned char* numbers(double offset, size_t count, size_t width) const;

  const unsigned char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tapline
