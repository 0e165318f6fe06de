// Initial weights as a function of logical indices only: (seed, tensor name, element in the logical tensor). So a rank that
// holds a part of a tensor, or one expert of many, starts with the same numbers as a rank that holds everything.
//
//   Values   uniform with mean 0 and the given standard deviation: additions and products alone, so the same bits on every
//            machine (a normal distribution would need the library's log and cos).
#pragma once

#include <cstdint>
#include <string_view>

#include "layers/compute/matrix.h"

namespace sluice {

// A number for a tensor's name that is the same everywhere (FNV-1a, mixed).
std::uint64_t name_key(std::string_view name);

// The value of one element, `spread` being the standard deviation.
double initial_value(std::uint64_t seed, std::uint64_t key, Index element, double spread);

// Fills a whole logical tensor; spread 0 sets ones.
template <typename T>
void set_initial_values(std::string_view name, std::uint64_t seed, double spread, View<T> tensor);

}  // namespace sluice
