// How much of memory the caches hold.
#pragma once

#include <cstddef>

namespace sluice {

// Of the largest cache that the first processor uses, as the system tells; 32 MiB where it does not.
std::size_t last_level_cache_bytes();

}  // namespace sluice
