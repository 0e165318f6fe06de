// What becomes of posted operations: turns, faults, stuck operations, and what the control plane says.
#include <cstring>

#include "base/log.h"
#include "comm/executor/communicator_state.h"
#include "comm/executor/runtime_state.h"
#include "device/cpu/copy.h"

namespace sluice::detail {
namespace {

constexpr Nanoseconds kArrivalAfter = std::chrono::milliseconds(100);  // stuck for so long: compare fingerprints
// What a leaver sent last may still be on its way, and so may what it said over the control tree (farewell, abort) when its links
// are closed already.
constexpr Nanoseconds kLeaverGrace = std::chrono::milliseconds(200);
constexpr Nanoseconds kWaitNotedAfter = std::chrono::milliseconds(1);
constexpr std::uint64_t kLookForBytesEvery = 32;              // of the progress mark; a power of two
constexpr std::uint64_t kTurnNotedFrom = kTurnBytes;          // bytes moved since the last event of the operation
constexpr Nanoseconds kDisputeMax = std::chrono::seconds(1);  // a digest differed and nobody could say why

std::string seconds(Nanoseconds time) {
  const double value = std::chrono::duration<double>(time).count();
  std::string text = std::to_string(value);
  return text.substr(0, text.find('.') + 3) + " s";
}

}  // namespace

bool CommunicatorState::enqueue(Operation* operation) {
  if (operation->fingerprint().kind == OperationKind::point_to_point)
    messages_.push(static_cast<PointToPoint*>(operation));
  else
    collectives_.push(operation);
  return !std::exchange(active_, true);
}

CommunicatorState::Turn CommunicatorState::turn(int steps, Moved* moved) {
  Turn result;
  if (broken()) {
    runtime_->keep_trace(status().text());
    result.finished = fail_all();
    result.moved = result.idle = true;
    return result;
  }
  if (!disputed_since_ && !collectives_.empty()) turn_of(collectives_, steps, moved, result);
  if (!messages_.empty()) turn_of_messages(steps, moved, result);
  if (collectives_.empty() && messages_.empty()) {
    active_ = false;
    result.idle = true;
  }
  return result;
}

bool CommunicatorState::ripe() {
  if (broken()) return true;
  if (disputed_since_) return false;
  if (!collectives_.empty() && collectives_.front()->ripe()) return true;
  return messages_.ripe();
}

void CommunicatorState::turn_of(OperationQueue& queue, int steps, Moved* moved, Turn& result) {
  Operation* operation = queue.front();
  const std::uint64_t before = operation->progress_mark();
  if (moved != nullptr) {
    moved->sent -= operation->bytes_sent();
    moved->here -= operation->bytes_moved();
  }
  const Advance advance = operation->advance(steps);
  if (const std::uint64_t mark = operation->progress_mark(); mark != before) {
    result.moved = true;
    if (before == 0) lane_.count.add_queued(runtime_->clock().ticks() - operation->posted_at());
    if ((mark ^ before) >= kLookForBytesEvery) note_turn(*operation);
  }
  if (moved != nullptr) {
    moved->sent += operation->bytes_sent();
    moved->here += operation->bytes_moved();
  }
  if (advance == Advance::done) {
    queue.pop();
    finish(operation, {});
    ++result.finished;
    result.moved = true;
  } else if (advance == Advance::failed) {
    fault(*operation);
    result.moved = true;
  }
}

void CommunicatorState::turn_of_messages(int steps, Moved* moved, Turn& result) {
  messages_.for_each([&](OperationQueue& queue) {
    if (queue.front()->waiting_for() == rank())
      match_own_messages(result);
    else
      turn_of(queue, steps, moved, result);
  });
}

// Sends to oneself and their receives.
void CommunicatorState::match_own_messages(Turn& result) {
  MessagePeer& self = messages_.peer(rank());
  while (!self.sends.empty() && !self.receives.empty()) {
    auto* send = static_cast<SendOperation*>(self.sends.front());
    auto* receive = static_cast<ReceiveOperation*>(self.receives.front());
    if (!receive->accepts(send->preamble()))
      return break_with({Code::mismatch, title(*receive) + ": " + receive->fault_text()}, true);
    if (send->bytes() != 0) copy_bytes(receive->data(), send->data(), send->bytes());
    finish(self.sends.pop(), {});
    finish(self.receives.pop(), {});
    result.finished += 2;
    result.moved = true;
  }
}

bool CommunicatorState::count_done(const Operation& operation) {
  const std::uint64_t now = runtime_->clock().ticks();
  const std::uint64_t sent = operation.bytes_sent();
  lane_.count.add(sent, operation.posted_at(), now);
  note(operation, TraceKind::done, sent, now);
  return true;
}

void CommunicatorState::note_turn(Operation& operation) {
  const std::uint64_t moved = operation.bytes_moved();
  if (moved - operation.traced_bytes() < kTurnNotedFrom) return;
  const std::uint64_t bytes = moved - std::exchange(operation.traced_bytes(), moved);
  note(operation, TraceKind::turn, TraceEvent::turn_detail(operation.slice(), bytes), runtime_->clock().ticks());
}

void CommunicatorState::note_wait(const Operation& operation, WaitReason reason) {
  const std::uint64_t detail = TraceEvent::wait_detail(operation.slice(), reason, operation.waiting_for());
  note(operation, TraceKind::wait, detail, runtime_->clock().ticks());
}

void CommunicatorState::finish(Operation* operation, Status status) {
  if (status.ok())
    count_done(*operation);
  else
    note(*operation, TraceKind::failed, operation->bytes_sent(), runtime_->clock().ticks());
  operation->finish(std::move(status));
  operation->drop_reference();
}

int CommunicatorState::fail_all() {
  // The others must hear of it: they may still read and write this rank's windows for these operations.
  if (!broken() && (!collectives_.empty() || !messages_.empty()))
    break_with({Code::aborted, "communicator '" + identity_.name + "' was destroyed with operations unfinished"}, true);
  const Status why = status();
  int finished = 0;
  const auto fail = [&](OperationQueue& queue) {
    for (; !queue.empty(); ++finished) finish(queue.pop(), why);
  };
  fail(collectives_);
  messages_.for_each(fail);
  active_ = false;
  return finished;
}

std::string CommunicatorState::title(const Operation& operation) const {
  const Fingerprint& print = operation.fingerprint();
  std::string text = std::string(name(print.kind));
  if (print.sequence != 0) text += " #" + std::to_string(print.sequence);
  return text + " on communicator '" + identity_.name + "' (lane " + lane().name + ")";
}

// A message that does not fit. A text says all; a differing digest is explained by the fingerprints.
void CommunicatorState::fault(Operation& operation) {
  const std::string text = operation.fault_text();
  if (!text.empty()) return break_with({Code::mismatch, title(operation) + ": " + text}, true);
  disputed_since_ = runtime_->clock().now();
  announce(operation);
}

void CommunicatorState::watch(Nanoseconds now) {
  if (broken()) return;
  if (disputed_since_ && now - *disputed_since_ > kDisputeMax && !collectives_.empty()) {
    const Operation& operation = *collectives_.front();
    return break_with(
        {Code::mismatch, title(operation) + ": rank " + std::to_string(operation.waiting_for()) +
                             " is inside another operation than rank " + std::to_string(rank()) + who_waits(operation)},
        true);
  }
  if (!collectives_.empty()) {
    if (early_arrivals_.load(std::memory_order_relaxed)) compare_arrivals(collectives_.front()->fingerprint());
    watch_operation(*collectives_.front(), now);
  }
  messages_.for_each([&](OperationQueue& queue) { watch_operation(*queue.front(), now); });
}

void CommunicatorState::watch_operation(Operation& operation, Nanoseconds now) {
  const bool held = lane_.held(now);
  if (operation.stuck_for(now) > kWaitNotedAfter && operation.take_wait_note())
    note_wait(operation, held ? WaitReason::ceiling : operation.waits_on());
  if (held) operation.is_not_stuck(now);
  const Nanoseconds stuck = operation.stuck_for(now);
  const Rank peer = operation.waiting_for();
  if (peer >= 0 && peer != rank()) {
    const Rank world_peer = world_rank(peer);
    if (auto transport = runtime_->transport_to(world_peer); transport.ok())
      if (const Status link = (*transport)->peer_status(world_peer);
          !link.ok() && !runtime_->left(world_peer) && (link.code() != Code::peer_lost || stuck > kLeaverGrace))
        return break_with({link.code(), title(operation) + ": rank " + std::to_string(peer) + ": " + link.text()},
                          true);
    if (stuck > kLeaverGrace && runtime_->left(world_peer))
      return break_with({Code::peer_lost, title(operation) + ": rank " + std::to_string(peer) + " left while rank " +
                                              std::to_string(rank()) + " waits for it"},
                        true);
  }
  if (stuck > kArrivalAfter && operation.fingerprint().sequence != 0 && operation.take_arrival_turn(now))
    announce(operation);
  if (stuck > operation.deadline()) time_out(operation, stuck);
}

void CommunicatorState::time_out(Operation& operation, Nanoseconds stuck) {
  std::string text = title(operation) + ": no progress for " + seconds(stuck) + " on rank " + std::to_string(rank());
  if (operation.waiting_for() >= 0) text += ", which waits for rank " + std::to_string(operation.waiting_for());
  text += who_waits(operation);
  break_with({Code::timeout, text + " (SLUICE_DEADLINE or CallOptions::deadline sets how long is waited)"}, true);
}

// What the others said: stuck ranks announce themselves and for whom they wait; who said nothing may be elsewhere.
std::string CommunicatorState::who_waits(const Operation& operation) const {
  if (operation.fingerprint().sequence == 0) return {};
  const std::lock_guard lock(mutex_);
  std::string waits;
  std::string silent;
  for (Rank other = 0; other < ranks(); ++other) {
    if (other == rank()) continue;
    const auto at = arrivals_.find(other);
    if (at == arrivals_.end() || at->second.print.sequence < operation.fingerprint().sequence)
      silent += (silent.empty() ? "; not seen inside it: rank " : ", rank ") + std::to_string(other);
    if (at != arrivals_.end() && !at->second.waits.empty())
      waits += "; " + at->second.waits + " in #" + std::to_string(at->second.print.sequence);
  }
  return waits + silent;
}

bool CommunicatorState::mark_broken(const Status& why) {
  const std::lock_guard lock(mutex_);
  if (broken_.load(std::memory_order_relaxed)) return false;
  status_ = why;
  runtime_->note_broken();  // before anybody sees that it is broken, and frees a window
  broken_.store(true, std::memory_order_release);
  return true;
}

void CommunicatorState::break_with(const Status& why, bool tell) {
  if (identity_.parent != nullptr) return identity_.parent->break_with(why, tell);
  if (!mark_broken(why)) return;
  for (CommunicatorState* one : call_lanes_.all()) one->mark_broken(why);
  log(LogLevel::error, runtime_->world_rank(), std::string(sluice::name(why.code())) + ": " + why.text());
  if (tell)
    runtime_->control().flood({NoticeKind::abort, identity_.id, runtime_->world_rank(), why.code(), why.text(), {}});
  runtime_->engine().wake();
}

Status CommunicatorState::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

// At every post. The hint may be seen late, hence watch() looks again.
void CommunicatorState::remember(const Fingerprint& print) {
  history_.note(print);
  if (early_arrivals_.load(std::memory_order_relaxed)) compare_arrivals(print);
}

void CommunicatorState::compare_arrivals(const Fingerprint& print) {
  std::optional<std::string> differs;
  {
    const std::lock_guard lock(mutex_);
    bool early = false;
    for (const auto& [other, theirs] : arrivals_) {
      if (theirs.print.sequence == print.sequence && !differs) differs = difference(theirs.print, other, print, rank());
      early = early || theirs.print.sequence > print.sequence;
    }
    early_arrivals_.store(early, std::memory_order_relaxed);
  }
  if (differs) disagree(print, *differs);
}

void CommunicatorState::on_arrival(Rank world_rank, const std::string& waits, const std::vector<Fingerprint>& prints) {
  const auto other = rank_of_world(world_rank);
  if (!other || prints.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    arrivals_[*other] = {prints.front(), waits};
    early_arrivals_.store(true, std::memory_order_relaxed);
  }
  for (const Fingerprint& theirs : prints) {
    if (theirs.communicator != identity_.id) continue;
    const auto mine = history_.find(theirs.sequence);
    if (!mine) continue;
    if (const auto differs = difference(theirs, *other, *mine, rank())) return disagree(theirs, *differs);
  }
}

// With the operations before it: ranks may have disagreed on one that could end without anybody waiting.
void CommunicatorState::announce(const Operation& operation) {
  std::vector<Fingerprint> prints{operation.fingerprint()};
  for (const Fingerprint& before : history_.all()) prints.push_back(before);
  const Rank peer = operation.waiting_for();
  const std::string waits =
      peer < 0 ? std::string() : "rank " + std::to_string(rank()) + " waits for rank " + std::to_string(peer);
  runtime_->control().flood(
      {NoticeKind::arrival, identity_.id, runtime_->world_rank(), Code::ok, waits, encode(prints)});
}

void CommunicatorState::disagree(const Fingerprint& print, const std::string& difference) {
  break_with({Code::mismatch, std::string(sluice::name(print.kind)) + " #" + std::to_string(print.sequence) +
                                  " on communicator '" + identity_.name + "': " + difference},
             true);
}

void CommunicatorState::on_abort(const Notice& notice) {
  if (rank_of_world(notice.world_rank)) break_with({notice.code, notice.text}, false);
}

void CommunicatorState::on_peer_lost(Rank world_rank, const std::string& how) {
  const auto other = rank_of_world(world_rank);
  if (!other) return;
  break_with({Code::peer_lost, "communicator '" + identity_.name + "': rank " + std::to_string(*other) +
                                   " (world rank " + std::to_string(world_rank) + ") is lost: " + how},
             false);
}

}  // namespace sluice::detail
