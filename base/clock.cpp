#include "base/clock.h"

namespace sluice {

RealClock& RealClock::instance() {
  static RealClock clock;
  return clock;
}

}  // namespace sluice
