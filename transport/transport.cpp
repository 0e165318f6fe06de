#include "transport/transport.h"

#include <poll.h>

#include <array>

#include "base/assert.h"
#include "transport/poller.h"

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

std::string describe(const FlowId& flow) {
  return "communicator " + std::to_string(flow.communicator) + " lane " + std::to_string(flow.lane) + " channel " +
         std::to_string(flow.channel);
}

std::string describe(RingShape shape) {
  return std::to_string(shape.slots) + " slots of " + std::to_string(shape.slot_bytes) + " bytes";
}

void wait_any(std::span<Transport* const> transports, Nanoseconds at_most) {
  SLUICE_ASSERT(transports.size() <= kWaitAnyMax, "more transports than one wait can take");
  if (transports.size() == 1) return transports[0]->wait(at_most);
  std::array<pollfd, kWaitAnyMax> polled{};
  for (std::size_t i = 0; i < transports.size(); ++i) {
    polled[i] = {transports[i]->wait_fd(), POLLIN, 0};
    SLUICE_ASSERT(polled[i].fd >= 0, "this transport can't be waited for together with others");
  }
  const timespec timeout = to_timespec(at_most);
  ppoll(polled.data(), transports.size(), &timeout, nullptr);  // a signal or an error is an early return
  for (Transport* transport : transports) transport->cancel_wait();
}

}  // namespace sluice
