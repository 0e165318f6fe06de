// Checks of a call, before anything is posted: each error names rank, field, value and what to do.
#pragma once

#include <cstddef>
#include <string_view>

#include "comm/communicator.h"
#include "comm/executor/fingerprint.h"
#include "comm/schedule/schedule.h"

namespace sluice::detail {

// A collective as it was called.
struct Call {
  OperationKind kind = OperationKind::none;
  Collective collective = Collective::all_reduce;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;  // elements of the message or of one block; of this rank's block in gather_v and scatter_v
  DataType type = DataType::float32;
  Reduction reduction;
  Rank root = -1;
  bool uneven = false;
  Blocks in_blocks;  // uneven only; empty: one block of `count`
  Blocks out_blocks;
  bool shared_blocks = false;  // all ranks give the same blocks
};

// Ranges of memory that a call reads and writes, in bytes.
struct CallExtent {
  std::size_t in_bytes = 0;
  std::size_t out_bytes = 0;
  bool has_in = true;
  bool has_out = true;
};

// invalid_argument or unsupported; otherwise what the call touches.
Result<CallExtent> check_call(const Call& call, Rank rank, int ranks);

// The part of it that depends on where the buffers lie.
Status check_pointers(const Call& call, const CallExtent& extent, Rank rank);

// True for the forms that header communicator.h names; invalid_argument for any other overlap.
Result<bool> check_in_place(const Call& call, const CallExtent& extent, Rank rank, int ranks);

// A send or receive.
struct MessageWords {
  std::string_view call;
  std::string_view peer;  // what the peer is to it
};
struct Message {
  const void* data;
  std::size_t count;
  DataType type;
  Rank peer;
};
Status check_message(MessageWords words, Message message, Rank rank, int ranks);

Status check_rank(std::string_view call, std::string_view field, Rank value, Rank rank, int ranks);

}  // namespace sluice::detail
