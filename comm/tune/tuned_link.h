// Where measured times may be used: all ranks of a communicator must choose alike.
//
//   Rule     on one host, with the same digest told by every rank at joining (PeerInfo::tuning): all know these, so all answer alike.
//            Between hosts the network was never measured: predictions.
#pragma once

#include <string>
#include <vector>

#include "comm/bootstrap/control.h"
#include "comm/tune/tune.h"

namespace sluice {

// `predicted` with what `file` measured of the links among `members` (world ranks), if that may be used. `file` (or null) is this
// rank's, and is borrowed by the result. `shared_memory`: ranks of a host use it.
LinkModel tuned_link(const LinkModel& predicted, const MachineFile* file, const Control& control,
                     const std::vector<Rank>& members, bool shared_memory);

// The model with measured parameters and times, which it borrows.
LinkModel with_measures(const LinkMeasures& measures);

// What joins these ranks of one host.
LinkKind link_kind(const Control& control, const std::vector<Rank>& members, bool shared_memory);

// Names the first rank that chooses by other times than the first rank of its host; empty: there is none.
std::string tuning_difference(const Control& control);

}  // namespace sluice
