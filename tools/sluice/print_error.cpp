#include <cstdio>

#include "tools/sluice/commands.h"

namespace sluice::tools {

void print_error(const std::string& command, const Error& error) {
  std::fprintf(stderr, "sluice %s: %s: %s\n", command.c_str(), std::string(name(error.code)).c_str(),
               error.text.c_str());
}

}  // namespace sluice::tools
