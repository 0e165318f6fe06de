#include "base/result.h"

#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace sluice {

std::string_view name(Code code) {
  switch (code) {
    case Code::ok: return "ok";
    case Code::invalid_argument: return "invalid_argument";
    case Code::unsupported: return "unsupported";
    case Code::mismatch: return "mismatch";
    case Code::peer_lost: return "peer_lost";
    case Code::timeout: return "timeout";
    case Code::aborted: return "aborted";
    case Code::refused: return "refused";
    case Code::out_of_resource: return "out_of_resource";
    case Code::system: return "system";
  }
  return "unknown";
}

Error system_error(std::string text, int error_number) {
  text += ": ";
  text += std::generic_category().message(error_number);
  return {Code::system, std::move(text)};
}

void die_of(const Error& error) {
  std::fprintf(stderr, "sluice: a failed result was used as a value: %s: %s\n", std::string(name(error.code)).c_str(),
               error.text.c_str());
  std::abort();
}

}  // namespace sluice
