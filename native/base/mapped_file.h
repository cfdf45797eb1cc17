#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tapline {

/// A memory-mapped file: only the pages that are read are loaded, and processes share them.
class MappedFile {
 public:
  /// The path is UTF-8 on every system. Throws kInvalidArgument if the file cannot be opened or is empty.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// `count` floats from byte `offset`, a multiple of four. Throws kInvalidArgument if they do not lie in the
  /// file.
  const float* floats(double offset, size_t count) const;
  /// The same for 16-bit numbers, at a multiple of two.
  const uint16_t* halves(double offset, size_t count) const;
  /// The same for bytes.
  const unsigned char* bytes(double offset, size_t count) const { return numbers(offset, count, 1); }

  /// Asks the system to load bytes that will be read soon.
  void expect(double offset, size_t bytes) const;

 private:
  const unsigned char* numbers(double offset, size_t count, size_t width) const;

  const unsigned char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tapline
