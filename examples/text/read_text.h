// A text file as bytes, plain or gzip-compressed (also dictzip's `.dz`, which is gzip with an index).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace sluice::examples {

// Where Debian's package dict-gcide leaves a large free text: the default of the programs here.
inline constexpr const char* kDefaultText = "/usr/share/dictd/gcide.dict.dz";

// Errors: invalid_argument names the file: missing, a folder, empty, damaged, above kTextBytesMax. unsupported: compressed, and
// this build has no zlib.
Result<std::vector<std::uint8_t>> read_text(const std::string& path);

inline constexpr std::size_t kTextBytesMax = std::size_t{4} << 30;

}  // namespace sluice::examples
