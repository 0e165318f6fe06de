// Result<T> and Status: the one vocabulary of failure in this house.
//
// A code names the largest thing that is now broken (the call, the peer, the communicator, the machine);
// the text names rank, peer, lane, field and value, and says what to do. See docs/errors.md for every
// code with its cure. Nothing here throws.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace sluice {

enum class Code : std::uint8_t {
  ok,
  invalid_argument,  // the call: an argument can't be right
  unsupported,       // the call: a pair or feature that this build does not offer
  mismatch,          // the communicator: ranks disagree about an operation
  peer_lost,         // the peer: its process is gone or left
  timeout,           // the peer: no progress before the deadline
  aborted,           // the communicator: aborted here or by another rank
  refused,           // the peer: it could not prove the secret or broke the protocol
  out_of_resource,   // the machine: memory, descriptors, credits
  system,            // the machine: a system call failed
};

std::string_view name(Code code);

struct Error {
  Code code = Code::system;
  std::string text;
};

// A failed system call: `text: strerror(error_number)`.
Error system_error(std::string text, int error_number);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  Status(Code code, std::string text) : error_{code, std::move(text)} {}

  bool ok() const { return error_.code == Code::ok; }
  Code code() const { return error_.code; }
  const std::string& text() const { return error_.text; }
  const Error& error() const { return error_; }

 private:
  Error error_{Code::ok, {}};
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return held_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Only when ok(): anything else is our own mistake and ends the process with the error's text.
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<1>(held_); }
  Status status() const { return ok() ? Status() : Status(error()); }

 private:
  T& value() {
    if (!ok()) fail();
    return std::get<0>(held_);
  }
  const T& value() const {
    if (!ok()) fail();
    return std::get<0>(held_);
  }
  [[noreturn]] void fail() const;

  std::variant<T, Error> held_;
};

[[noreturn]] void die_of(const Error& error);

template <typename T>
void Result<T>::fail() const {
  die_of(error());
}

}  // namespace sluice

// Returns the error from the enclosing function, or goes on.
#define SLUICE_TRY(expression)                                                                            \
  do {                                                                                                    \
    if (::sluice::Status sluice_status = (expression); !sluice_status.ok()) return sluice_status.error(); \
  } while (false)

// Declares `declaration` from the value of a Result, or returns its error.
#define SLUICE_TRY_ASSIGN(declaration, expression) \
  SLUICE_TRY_ASSIGN_(SLUICE_JOIN_(sluice_result_, __LINE__), declaration, expression)
#define SLUICE_TRY_ASSIGN_(held, declaration, expression) \
  auto held = (expression);                               \
  if (!held.ok()) return held.error();                    \
  declaration = *std::move(held)
#define SLUICE_JOIN_(a, b) SLUICE_JOIN2_(a, b)
#define SLUICE_JOIN2_(a, b) a##b
