// Proofs of several operations at once, on communicators that overlap as they like: each rank's threads make their calls in some order, post
// them or block in them, and everything that lanes share is modelled.
//
//   Shared    slots: each flow has `reserved` of its own, and from the same ordered pair of ranks all flows draw on `surplus` more.
//             A connection: messages of one priority between two ranks arrive in the order in which they were sent; one is taken off only
//             when its flow has a slot. The engine: one thread of a rank, which gives each operation turns of a few steps. A
//             token bucket: an operation that may not go on for some turns.
//   Proves    that all calls end with the right result. Where flows have slots of their own (reserved >= Program::credits) ranks are
//             sequential processes over FIFO flows that nobody else can fill, so one fair run decides for every interleaving (a Kahn
//             network), and surplus only adds room. Where they have not, this is a search: runs in which one operation after the
//             other takes as much as it can.
//   Diagnoses calls that block in opposite orders, as the circle that they are: who is in which call, and for whom it waits.
//   Cost      that of verify_programs for each operation; with shared slots, times the number of operations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/lower/program.h"

namespace sluice {

struct ComposedOperation {
  std::string name;               // for messages
  std::vector<Rank> members;      // world ranks, by rank
  std::vector<Program> programs;  // of every member
  std::uint8_t priority = 0;      // that of its lane
  int pauses = 0;                 // of every 4 turns so many are skipped, for its ceiling's sake; 0..3
};

struct ComposedCall {
  std::size_t operation = 0;
  bool blocks = false;  // the thread goes on when it has ended
};

// Of one thread of a rank.
struct ComposedThread {
  Rank rank = 0;  // in the world
  std::vector<ComposedCall> calls;
};

struct ComposedLimits {
  int reserved = 8;  // slots of each flow that are its own
  int surplus = 0;   // more, which all flows of an ordered pair of ranks share
  int slices = 3;
  int window = 2;
  bool one_connection = true;  // of each pair and priority, as over TCP
  bool engine_sticks = false;  // broken: a rank's engine serves one operation until it ends
};

// Every operation is called once by each of its members. Errors: invalid_argument, naming operation, rank and fault; for calls that can't end
// the circle in which they wait.
Status verify_composition(std::span<const ComposedOperation> operations, std::span<const ComposedThread> threads,
                          const ComposedLimits& limits);

}  // namespace sluice
