// The sends and receives of one communicator that are not done: a queue for each peer and direction.
//
//   Threads  the communicator's one user thread makes the table with its first message, before anybody else can look, and alone looks at
//            the flows in it; everything else under the owner token.
#pragma once

#include <algorithm>
#include <vector>

#include "comm/executor/operation_queue.h"
#include "comm/executor/point_to_point.h"

namespace sluice::detail {

class Messages {
 public:
  explicit Messages(int ranks) : ranks_(ranks) {}

  MessagePeer& peer(Rank rank) {
    if (peers_.empty()) {
      peers_.resize(static_cast<std::size_t>(ranks_));
      for (Rank i = 0; i < ranks_; ++i) peers_[static_cast<std::size_t>(i)].rank = i;
    }
    return peers_[static_cast<std::size_t>(rank)];
  }

  bool empty() const { return busy_.empty(); }
  void push(PointToPoint* message) {
    OperationQueue& queue = message->queue();
    if (queue.empty()) busy_.push_back(&queue);
    queue.push(message);
  }
  // Calls visit(queue) for each queue that holds something; visit may empty it and others, and pushes nothing.
  template <typename Visit>
  void for_each(const Visit& visit) {
    for (OperationQueue* queue : busy_)
      if (!queue->empty()) visit(*queue);
    std::erase_if(busy_, [](const OperationQueue* queue) { return queue->empty(); });
  }
  bool ripe() const {
    return std::any_of(busy_.begin(), busy_.end(), [](const OperationQueue* queue) { return queue->front()->ripe(); });
  }

 private:
  int ranks_;
  std::vector<MessagePeer> peers_;
  std::vector<OperationQueue*> busy_;
};

}  // namespace sluice::detail
