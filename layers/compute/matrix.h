// Matrices as the layers see them: row-major, a View borrows, a Matrix owns and keeps its memory when it shrinks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <type_traits>

#include "base/assert.h"

namespace sluice {

using Index = std::ptrdiff_t;  // rows, columns and element counts of tensors

template <typename T>
struct View {
  T* data = nullptr;
  Index rows = 0;
  Index columns = 0;
  Index stride = 0;  // elements from one row to the next

  T* row(Index i) const { return data + i * stride; }
  View row_range(Index first, Index count) const { return {row(first), count, columns, stride}; }
  View column_range(Index first, Index count) const { return {data + first, rows, count, stride}; }
  operator View<const T>() const {  // NOLINT(google-explicit-constructor)
    return {data, rows, columns, stride};
  }
};

// Elements are not set: whoever shapes a matrix writes it. Aligned to 64 bytes.
template <typename T>
class Matrix {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Matrix() = default;
  Matrix(Index rows, Index columns) { shape(rows, columns); }

  // Gives it a new shape; what it held is gone.
  View<T> shape(Index rows, Index columns) {
    if (rows * columns > capacity_) {
      capacity_ = rows * columns;
      const std::size_t bytes = (static_cast<std::size_t>(capacity_) * sizeof(T) + 63) / 64 * 64;
      memory_.reset(static_cast<T*>(std::aligned_alloc(64, bytes)));
      SLUICE_ASSERT(memory_ != nullptr, "out of memory for a matrix of activations");
    }
    rows_ = rows;
    columns_ = columns;
    return view();
  }
  void fill(T value) { std::fill_n(memory_.get(), size(), value); }

  Index rows() const { return rows_; }
  Index columns() const { return columns_; }
  Index size() const { return rows_ * columns_; }
  T* data() const { return memory_.get(); }
  T* row(Index i) const { return memory_.get() + i * columns_; }
  View<T> view() const { return {memory_.get(), rows_, columns_, columns_}; }
  operator View<T>() const { return view(); }        // NOLINT(google-explicit-constructor)
  operator View<const T>() const { return view(); }  // NOLINT(google-explicit-constructor)

 private:
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T, Free> memory_;
  Index capacity_ = 0;
  Index rows_ = 0;
  Index columns_ = 0;
};

}  // namespace sluice
