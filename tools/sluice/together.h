// What a job does on several communicators at once, in words, to be proved (comm/verify/composition.h).
//
//     operation NAME COLLECTIVE[:ALGORITHM] RANKS [PRIORITY]      RANKS as in 0-3 or 0,2,5; PRIORITY control to bulk (normal)
//     calls RANK NAME[!] NAME[!] ...                              a thread of that rank, which makes these calls; ! waits for the end
//
//   Lines  empty ones and comments (#) are passed over. A member of which no line speaks posts all its operations in the order
//          of the file.
//   Trust  a file may be anybody's: at most kTogetherBytesMax of text, kTogetherMax operations and kTogetherRanksMax ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/verify/composition.h"

namespace sluice::tools {

inline constexpr std::size_t kTogetherBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kTogetherMax = 64;
inline constexpr int kTogetherRanksMax = 64;

struct Together {
  std::vector<ComposedOperation> operations = {};
  std::vector<ComposedThread> threads = {};
};

// Errors: invalid_argument with the line, the word and what is allowed.
Result<Together> parse_together(std::string_view text);

}  // namespace sluice::tools
