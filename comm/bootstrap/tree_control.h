// The control plane of a rank of a job with several: one thread, one loop, and the parts that it drives.
//
//   Order    everything a caller asks is posted to the loop; so are on_notice and deliver_links_to, which wait until the loop has
//            taken them up.
#pragma once

#include <memory>

#include "comm/bootstrap/join_state.h"

namespace sluice {

// As Control::join, from a plan. Blocks until the join has succeeded or failed.
Result<std::unique_ptr<Control>> join_by_plan(JoinPlan plan);

}  // namespace sluice
