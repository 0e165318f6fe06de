// Writing and reading little-endian fields. A reader never reads past its end: it turns bad, stays bad, and gives zeros.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace sluice {

class ByteWriter {
 public:
  template <typename Number>
  requires std::is_unsigned_v<Number>
  void number(Number value) {
    for (std::size_t i = 0; i < sizeof(Number); ++i)
      bytes_.push_back(static_cast<std::byte>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xff));
  }
  void bytes(std::span<const std::byte> from) { bytes_.insert(bytes_.end(), from.begin(), from.end()); }
  void text(std::string_view from) { bytes(std::as_bytes(std::span(from.data(), from.size()))); }
  void zeros(std::size_t count) { bytes_.insert(bytes_.end(), count, std::byte{0}); }

  std::size_t size() const { return bytes_.size(); }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> from) : left_(from) {}

  template <typename Number>
  requires std::is_unsigned_v<Number> Number number() {
    const auto from = bytes(sizeof(Number));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < from.size(); ++i) value |= static_cast<std::uint64_t>(from[i]) << (8 * i);
    return static_cast<Number>(value);
  }
  // Empty when fewer are left.
  std::span<const std::byte> bytes(std::size_t count) {
    if (count > left_.size()) {
      good_ = false;
      left_ = {};
      return {};
    }
    const auto result = left_.first(count);
    left_ = left_.subspan(count);
    return result;
  }
  std::string text(std::size_t count) {
    const auto from = bytes(count);
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  template <std::size_t N>
  void copy_to(std::array<std::byte, N>& to) {
    const auto from = bytes(N);
    std::copy(from.begin(), from.end(), to.begin());
  }

  bool good() const { return good_; }
  bool finished() const { return good_ && left_.empty(); }
  std::size_t left() const { return left_.size(); }

 private:
  std::span<const std::byte> left_;
  bool good_ = true;
};

}  // namespace sluice
