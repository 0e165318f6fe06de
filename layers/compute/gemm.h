// Matrix products through OpenBLAS, on the calling thread.
//
//   Shapes   a weight is stored [out, in], so a linear layer is y = x * w^T, its input gradient dy * w, its weight gradient
//            dy^T * x: the three forms below. A product with no rows, columns or depth is legal (it adds nothing).
//   Cost     2 * rows * columns * depth operations.
//   Limits   every extent below 2^31 (asserted).
//   Order    the sum over the depth is OpenBLAS's own: the same in every run of one shape on one kind of CPU.
#pragma once

#include <type_traits>

#include "layers/compute/matrix.h"

namespace sluice {

// Whether the product replaces the target or is added to it.
enum class Into : bool { replace, add };

template <typename T>
using Read = std::type_identity_t<View<const T>>;  // an argument that does not take part in deducing T

// target [n, m] = scale * a [n, k] * b [k, m]
template <typename T>
void multiply(View<T> target, Into into, Read<T> a, Read<T> b, T scale = 1);
// target [n, m] = scale * a [n, k] * b [m, k]^T
template <typename T>
void multiply_by_transposed(View<T> target, Into into, Read<T> a, Read<T> b, T scale = 1);
// target [n, m] = scale * a [k, n]^T * b [k, m]
template <typename T>
void multiply_transposed(View<T> target, Into into, Read<T> a, Read<T> b, T scale = 1);

// The layers are run by one thread per rank; OpenBLAS must not start its own. Process-wide, so call it once at the start.
void use_one_blas_thread();

}  // namespace sluice
