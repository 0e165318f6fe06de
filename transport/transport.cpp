#include "transport/transport.h"

namespace sluice {

std::string_view name(LinkClass link) {
  switch (link) {
    case LinkClass::self: return "self";
    case LinkClass::loop: return "loop";
    case LinkClass::shared_memory: return "shm";
    case LinkClass::tcp: return "tcp";
  }
  return "?";
}

}  // namespace sluice
