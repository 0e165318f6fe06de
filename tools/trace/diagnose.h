// Who is to blame: from the traces of the ranks that could still write one.
//
//   Death       who most of the others report as lost. Two sides that report each other: the network between them.
//   Divergence  an error that names two ranks' calls that differ.
//   Waiting     from each rank that waits, along "waits for", to where it ends: a rank that wrote nothing (stopped, or its machine hangs), a
//               rank that is not in that operation, or round in a circle. Where most of them end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/trace/rank_trace.h"

namespace sluice::tools {

struct Diagnosis {
  enum class Kind : std::uint8_t { nothing, lost, network, diverged, silent, absent, cycle } kind = Kind::nothing;
  std::optional<Rank> culprit = {};  // in the world
  std::string text = {};             // one sentence
  std::vector<std::string> evidence = {};
};
std::string_view name(Diagnosis::Kind kind);

// `traces`: by rank, at least one.
Diagnosis diagnose(const std::vector<RankTrace>& traces);

}  // namespace sluice::tools
