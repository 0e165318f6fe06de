// Operations in the order in which they are done; links them by `next`, so that nothing is allocated.
#pragma once

#include "comm/executor/operation.h"

namespace sluice::detail {

class OperationQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  Operation* front() const { return first_; }
  void push(Operation* operation) {
    operation->next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = operation;
    last_ = operation;
  }
  Operation* pop() {
    Operation* operation = first_;
    first_ = operation->next;
    return operation;
  }

 private:
  Operation* first_ = nullptr;
  Operation* last_ = nullptr;
};

}  // namespace sluice::detail
