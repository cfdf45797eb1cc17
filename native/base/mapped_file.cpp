#include "base/mapped_file.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/error.h"

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <system_error>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace tapline {

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw_error(ErrorCode::kInvalidArgument, "'", path, "' cannot be read: ", why, ".");
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

namespace {

/// Paths come as UTF-8; Windows' functions for bytes would read them in the machine's own code page.
std::wstring wide(const std::string& path) {
  const auto bytes = static_cast<int>(path.size());
  const int length = ::MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.data(), bytes, nullptr, 0);
  if (length <= 0) refuse(path, "it is not a path in UTF-8");
  std::wstring name(static_cast<size_t>(length), L'\0');
  ::MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.data(), bytes, name.data(), length);
  return name;
}

struct Handle {
  HANDLE held;
  ~Handle() { ::CloseHandle(held); }
};

std::string last_error() {
  return std::system_category().message(static_cast<int>(::GetLastError()));
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  // Other programs may replace or delete the file in the meantime, as on other systems.
  constexpr DWORD kSharing = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
  HANDLE file = ::CreateFileW(wide(path).c_str(), GENERIC_READ, kSharing, nullptr, OPEN_EXISTING,
                              FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) refuse(path, last_error());
  const Handle opened{file};
  LARGE_INTEGER size{};
  if (::GetFileSizeEx(file, &size) == 0 || size.QuadPart <= 0) refuse(path, "it is empty");
  HANDLE mapping = ::CreateFileMappingW(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
  if (mapping == nullptr) refuse(path, last_error());
  const Handle mapped{mapping};  // the view outlives both handles
  const void* view = ::MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
  if (view == nullptr) refuse(path, last_error());
  data_ = static_cast<const unsigned char*>(view);
  size_ = static_cast<size_t>(size.QuadPart);
}

MappedFile::~MappedFile() {
  ::UnmapViewOfFile(data_);
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
  if (!fits || static_cast<size_t>(offset) % width != 0)
    throw_error(ErrorCode::kInvalidArgument, count, " numbers at byte ", offset, " do not lie in a file of ",
                size_, " bytes.");
  return data_ + static_cast<size_t>(offset);
}

}  // namespace tapline
