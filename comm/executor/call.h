// Checks of a call, before anything is posted: each error names rank, field, value and what to do.
#pragma once

#include "comm/executor/communicator_state.h"

namespace sluice::detail {

// Ranges of memory that a call reads and writes, in bytes.
struct CallExtent {
  std::size_t in_bytes = 0;
  std::size_t out_bytes = 0;
  bool has_in = true;
  bool has_out = true;
};

// invalid_argument or unsupported; otherwise what the call touches.
Result<CallExtent> check_call(const Call& call, Rank rank, int ranks);

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

Status check_rank(std::string_view field, Rank value, Rank rank, int ranks);

}  // namespace sluice::detail
