// Ranks as threads of this process, each with a Runtime of its own.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "comm/communicator.h"
#include "tools/launch/local_ranks.h"

namespace sluice::test {

// Runs body(world) once per rank and fails the test where a rank can't join or its body returns an error. Collective calls
// inside go between the ranks.
inline void run_ranks(int ranks, const std::function<Status(Communicator world)>& body) {
  const auto id = make_local_unique_id();
  ASSERT_TRUE(id.ok()) << id.error().text;
  const auto one = [&](int rank) {
    auto runtime = Runtime::join(*id, rank, ranks, {});
    Status status = runtime.status();
    if (status.ok()) status = body((*runtime)->world());
    if (status.ok()) status = (*runtime)->world().close();
    EXPECT_TRUE(status.ok()) << "rank " << rank << ": " << status.text();
    return 0;
  };
  tools::run_threads(ranks, one);
}

}  // namespace sluice::test
