#include "base/mapped_file.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "base/error.h"

#ifndef _WIN32
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace tapline {

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, "'" + path + "' cannot be read: " + why + ".");
}

}  // namespace

#ifndef _WIN32

MappedFile::MappedFile(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) refuse(path, std::strerror(errno));
  struct stat found = {};
  if (::fstat(file, &found) != 0 || found.st_size <= 0) {
    ::close(file);
    refuse(path, "it is empty");
  }
  size_ = static_cast<size_t>(found.st_size);
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0);
  const int error = errno;
  ::close(file);
  if (mapped == MAP_FAILED) refuse(path, std::strerror(error));
  data_ = static_cast<const unsigned char*>(mapped);
}

MappedFile::~MappedFile() {
  ::munmap(const_cast<unsigned char*>(data_), size_);
}

void MappedFile::expect(double offset, size_t bytes) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t from = static_cast<size_t>(offset) / page * page;
  if (from >= size_) return;
  const size_t to = std::min(size_, static_cast<size_t>(offset) + bytes);
  ::madvise(const_cast<unsigned char*>(data_) + from, to - from, MADV_WILLNEED);  // only a hint: it may fail
}

#else

MappedFile::MappedFile(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file || _fseeki64(file.get(), 0, SEEK_END) != 0) refuse(path, "it cannot be opened");
  const int64_t size = _ftelli64(file.get());
  if (size <= 0) refuse(path, "it is empty");
  size_ = static_cast<size_t>(size);
  auto* bytes = static_cast<unsigned char*>(::operator new(size_));
  data_ = bytes;
  _fseeki64(file.get(), 0, SEEK_SET);
  if (std::fread(bytes, 1, size_, file.get()) != size_) {
    ::operator delete(bytes);
    refuse(path, "it ended early");
  }
}

MappedFile::~MappedFile() {
  ::operator delete(const_cast<unsigned char*>(data_));
}

void MappedFile::expect(double, size_t) const {}

#endif

const float* MappedFile::floats(double offset, size_t count) const {
  return reinterpret_cast<const float*>(numbers(offset, count, sizeof(float)));
}

const uint16_t* MappedFile::halves(double offset, size_t count) const {
  return reinterpret_cast<const uint16_t*>(numbers(offset, count, sizeof(uint16_t)));
}

const unsigned char* MappedFile::numbers(double offset, size_t count, size_t width) const {
  const bool fits = offset >= 0 && offset <= static_cast<double>(size_) &&
                    count <= (size_ - static_cast<size_t>(offset)) / width;
  if (!fits || static_cast<size_t>(offset) % width != 0) {
    throw Error(ErrorCode::kInvalidArgument, std::to_string(count) + " numbers at byte " +
                                                 std::to_string(offset) + " do not lie in a file of " +
                                                 std::to_string(size_) + " bytes.");
  }
  return data_ + static_cast<size_t>(offset);
}

}  // namespace tapline
