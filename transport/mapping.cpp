#include "transport/mapping.h"

#include <sys/mman.h>

#include <cerrno>
#include <string>

namespace sluice {

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

Result<Mapping> Mapping::reserve(std::size_t bytes) {
  return map(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

Result<Mapping> Mapping::share(int fd, std::size_t bytes) { return map(bytes, MAP_SHARED | MAP_NORESERVE, fd); }

Result<Mapping> Mapping::map(std::size_t bytes, int flags, int fd) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (memory == MAP_FAILED) {
    Error error = system_error("can't map " + std::to_string(bytes) + " bytes of address space", errno);
    error.code = Code::out_of_resource;
    return error;
  }
  return Mapping(static_cast<std::byte*>(memory), bytes);
}

}  // namespace sluice
