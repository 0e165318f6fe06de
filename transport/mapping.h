// Owns one mapping of memory and unmaps it.
#pragma once

#include <cstddef>
#include <utility>

#include "base/result.h"

namespace sluice {

class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  // Address space for private, zeroed pages that become real memory when touched. Errors: out_of_resource.
  static Result<Mapping> reserve(std::size_t bytes);
  // The first `bytes` of the file, read and written together with all who map it. Errors: out_of_resource.
  static Result<Mapping> share(int fd, std::size_t bytes);

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Mapping(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  static Result<Mapping> map(std::size_t bytes, int flags, int fd);

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace sluice
