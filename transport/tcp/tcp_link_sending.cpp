// What a link sends, in which order, and how much of it the kernel may hold.
#include <algorithm>
#include <optional>
#include <utility>

#include "transport/tcp/socket_options.h"
#include "transport/tcp/tcp_link.h"

namespace sluice {
namespace {

constexpr double kRateFades = 0.98;
constexpr Nanoseconds kLookEvery = std::chrono::milliseconds(10);
constexpr double kLookMax = 1;                    // seconds: what was seen before says nothing of now
constexpr std::size_t kLittleInKernel = 1 << 15;  // bytes: less keeps nobody waiting
constexpr std::size_t kBoundMin = 1 << 13;
constexpr double kGuaranteeSpare = 1.5;
constexpr std::size_t kBoundAtFirst = 1 << 15;
constexpr std::size_t kBoundMax = 1 << 23;

}  // namespace

// The most that was seen, which fades: what a short queue let through says nothing against it.
std::size_t TcpLink::bound(Nanoseconds delay, Nanoseconds now) {
  if (now - looked_ >= kLookEvery) look(now);
  std::optional<std::size_t> said;
  for (const auto& lane : lanes_)
    if (const std::size_t bytes = lane->of->rules.in_flight; bytes != 0) said = std::min(said.value_or(bytes), bytes);
  const double seconds = std::chrono::duration<double>(delay + round_trip_).count();
  const auto carried = rate_ == 0 ? kBoundAtFirst : static_cast<std::size_t>(rate_ * seconds);
  const std::size_t wanted = said.value_or(std::max(std::clamp(carried, kBoundMin, kBoundMax), guaranteed()));
  if (bound_ != 0 && wanted > bound_ - bound_ / 8 && wanted < bound_ + bound_ / 8) return 0;
  bound_ = wanted;
  bound_in_flight(fd(), bound_);
  return bound_;
}

// What must be under way for the lanes to get what they are guaranteed, however long the queues of others are.
std::size_t TcpLink::guaranteed() const {
  double rate = 0;
  for (const auto& lane : lanes_) rate += static_cast<double>(lane->of->rules.min_rate);
  const double bytes = kGuaranteeSpare * rate * std::chrono::duration<double>(now_round_trip_).count();
  return std::min(static_cast<std::size_t>(bytes), kBoundMax);
}

// Over short times a burst would look like a rate.
void TcpLink::look(Nanoseconds now) {
  const LinkSight sight = look_at(fd());
  round_trip_ = sight.round_trip;
  now_round_trip_ = sight.now_round_trip;
  const std::uint64_t fresh = sight.acknowledged - std::exchange(acknowledged_, sight.acknowledged);
  const double passed = std::chrono::duration<double>(now - std::exchange(looked_, now)).count();
  rate_ = passed > kLookMax ? 0 : std::max(static_cast<double>(fresh) / passed, rate_ * kRateFades);
}

bool TcpLink::backlog() {
  if (!live() || !queued_) return false;
  queued_ = !batch_.empty() || bytes_in_kernel(fd()) > kLittleInKernel;
  return queued_;
}

void TcpLink::unbound() {
  if (std::exchange(bound_, 0) != 0) leave_in_flight_to_the_kernel(fd());
}

Result<std::size_t> TcpLink::send(const TcpTurn& turn) {
  for (std::size_t moved = 0;;) {
    if (batch_.empty()) {
      has_message_ = granted_ = false;
      SLUICE_TRY_ASSIGN(const std::size_t frames, fill_batch(turn));
      moved += frames;
    }
    if (batch_.empty() || !writable_) return moved;
    if (turn.held && has_message_ && !granted_ && !is_owed(*turn.now)) return moved;  // also in the middle of a message
    if (bound_ == 0) {
      SLUICE_TRY_ASSIGN(writable_, batch_.send(fd(), SendBatch::kAll));
      continue;
    }
    // One call may give the socket much more than it has room for, so it is counted here.
    const std::size_t held = bytes_in_kernel(fd());
    if (held >= bound_) {
      writable_ = ask_for_room(fd());
      return moved;
    }
    SLUICE_TRY_ASSIGN(writable_, batch_.send(fd(), bound_ - held));
  }
}

Result<std::size_t> TcpLink::fill_batch(const TcpTurn& turn) {
  std::size_t frames = 0;
  for (; frames < control_.size() && !batch_.full(); ++frames) batch_.add(control_[frames], {});
  control_.erase(control_.begin(), control_.begin() + static_cast<std::ptrdiff_t>(frames));
  const bool data = anything_to_send();
  frames += add_credits(turn.all_credits || data);
  if (!data || (turn.held && frames != 0)) return frames;  // those of others need not wait for what is held
  granted_ = turn.held;
  SLUICE_TRY_ASSIGN(const std::size_t messages, add_messages(turn));
  return frames + messages;
}

std::size_t TcpLink::add_credits(bool all) {
  std::size_t frames = 0;
  for (In* const in : ins_) {
    const std::uint64_t released = in->flow.released();
    const std::uint64_t untold = released - in->told;
    if (untold == 0 || (!all && 2 * untold < in->ring.ring().shape().slots)) continue;
    if (batch_.full()) break;
    batch_.add({.kind = FrameKind::credit, .flow = in->id, .number = released}, {});
    in->told = released;
    ++frames;
  }
  return frames;
}

// A lane got less than it is guaranteed.
bool TcpLink::is_owed(Nanoseconds now) const {
  return std::any_of(lanes_.begin(), lanes_.end(), [&](const auto& lane) { return lane->of->floor.any(now); });
}

bool TcpLink::anything_to_send() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->sendable(); });
}

bool TcpLink::Lane::sendable() const {
  return std::any_of(outs.begin(), outs.end(), [](const Out* out) { return out->sendable(); });
}

TcpLink::Out* TcpLink::Lane::next() {
  while (!outs[turn % outs.size()]->sendable()) ++turn;
  return outs[turn++ % outs.size()];
}

// Whoever moved least by its weight, of those that have something to send and may.
TcpLink::Lane* TcpLink::next_lane(const TcpTurn& turn) {
  Lane* least = nullptr;
  for (const auto& lane : lanes_) {
    const bool was_idle = std::exchange(lane->idle, !lane->sendable());
    if (lane->idle) continue;
    if (was_idle) lane->share.catch_up(served_, lane->of->rules.weight);
    if (turn.held && !lane->of->floor.any(*turn.now)) continue;
    if (least == nullptr || lane->share.moved() < least->share.moved()) least = lane.get();
  }
  return least;
}

Result<std::size_t> TcpLink::add_messages(const TcpTurn& turn) {
  std::size_t frames = 0;
  const std::size_t most = bound_ == 0 ? SendBatch::kFramesMax : 1;  // whoever is next is decided as late as can be
  for (Lane* lane = nullptr; frames < most && !batch_.full() && (lane = next_lane(turn)) != nullptr; ++frames) {
    Out& out = *lane->next();
    const std::uint64_t bytes = kFrameBytes + out.ring.ring().header(out.sent).bytes;
    SLUICE_TRY(add_message(out));
    served_ = lane->share.moved();
    lane->share.charge(bytes, lane->of->rules.weight);
    if (!turn.now) continue;
    last_sent_ = *turn.now;
    queued_ = true;
    lane->of->floor.spend_of_guarantee(bytes, *turn.now);
  }
  return frames;
}

Status TcpLink::add_message(Out& out) {
  const Ring& ring = out.ring.ring();
  const SlotHeader header = ring.header(out.sent);
  if (header.described() || header.bytes > ring.shape().slot_bytes)
    return {Code::refused, "we committed a message of " + std::to_string(header.bytes) + " bytes to " +
                               describe(out.id) + " with " + describe(ring.shape())};
  batch_.add(
      {.kind = FrameKind::message, .flow = out.id, .number = out.sent, .digest = header.digest, .bytes = header.bytes},
      {ring.place(out.sent, header.bytes), header.bytes});
  ++out.sent;
  has_message_ = true;
  return {};
}

}  // namespace sluice
