// Work, Group and WindowBuffer: the handles that a communicator gives.
#include "comm/communicator.h"
#include "comm/executor/communicator_state.h"
#include "comm/executor/runtime_state.h"

namespace sluice {

Work::Work() = default;
Work::Work(Status done) : done_(std::move(done)) {}
Work::Work(detail::Operation* operation) : operation_(operation) {}
Work::Work(Work&& other) noexcept
    : operation_(std::exchange(other.operation_, nullptr)), done_(std::move(other.done_)) {}

Work& Work::operator=(Work&& other) noexcept {
  if (this == &other) return *this;
  if (operation_ != nullptr) operation_->drop_reference();
  operation_ = std::exchange(other.operation_, nullptr);
  done_ = std::move(other.done_);
  return *this;
}

Work::~Work() {
  if (operation_ != nullptr) operation_->drop_reference();
}

Status Work::wait() {
  if (operation_ == nullptr) return done_;
  if (!operation_->finished()) operation_->communicator().runtime().engine().wait(*operation_);
  done_ = operation_->status();
  std::exchange(operation_, nullptr)->drop_reference();
  return done_;
}

bool Work::test() {
  if (operation_ == nullptr) return true;
  if (!operation_->finished()) operation_->communicator().runtime().engine().poll();
  return operation_->finished();
}

Status Group::wait() {
  Status first;
  for (Work& work : works_) {
    Status done = work.wait();
    if (first.ok() && !done.ok()) first = std::move(done);
  }
  works_.clear();
  return first;
}

WindowBuffer::WindowBuffer(std::shared_ptr<detail::RuntimeState> runtime, void* data, std::size_t bytes, bool shared)
    : runtime_(std::move(runtime)), data_(data), bytes_(bytes), shared_(shared) {}

WindowBuffer::WindowBuffer(WindowBuffer&& other) noexcept
    : runtime_(std::move(other.runtime_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      shared_(std::exchange(other.shared_, false)) {}

WindowBuffer& WindowBuffer::operator=(WindowBuffer&& other) noexcept {
  std::swap(runtime_, other.runtime_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(shared_, other.shared_);
  return *this;
}

WindowBuffer::~WindowBuffer() {
  if (data_ != nullptr) runtime_->free_window(data_, shared_);
}

}  // namespace sluice
