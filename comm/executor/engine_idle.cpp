// How the engine waits when nothing can move: spin, yield, sleep. Who drives is in engine.cpp.
#include <poll.h>
#include <sched.h>

#include <algorithm>

#include "comm/executor/communicator_state.h"
#include "comm/executor/engine.h"
#include "transport/poller.h"

namespace sluice::detail {
namespace {

constexpr Nanoseconds kSleepMax = std::chrono::milliseconds(20);
constexpr Nanoseconds kSleepWithoutAlarm = std::chrono::milliseconds(1);
constexpr Nanoseconds kSpinBeforeYield = std::chrono::microseconds(5);
constexpr Nanoseconds kLongYield = std::chrono::milliseconds(2);  // a slice of who computes, not turns of who waits
constexpr int kSleepsAfterLongYield = 100;
constexpr Nanoseconds kSwitch = std::chrono::nanoseconds(1500);  // more than a yield to nobody mostly takes
constexpr int kYieldsAfterSwitch = 50;
constexpr Nanoseconds kNapMin = std::chrono::microseconds(20);
constexpr Nanoseconds kNapMax = std::chrono::microseconds(200);
constexpr int kSpinsAtFullSpeed = 32;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

}  // namespace

// Nobody could move anything for so long.
void Engine::count_blocked(Nanoseconds time) {
  for (auto& lane : active_)
    for (auto one = lane.begin(); one != lane.end(); ++one) {
      LaneState& state = (*one)->lane_state();
      const bool counted = std::any_of(lane.begin(), one, [&](auto* other) { return &other->lane_state() == &state; });
      if (!counted) state.count.add_blocked(static_cast<std::uint64_t>(time.count()));
    }
}

// Looks at nothing but what the only busy communicator waits for. True: it came.
bool Engine::spin() {
  if (spins_ == 0 || active_count_ != 1 || held_until_) return false;
  CommunicatorState* only = nullptr;
  for (const auto& lane : active_)
    if (!lane.empty()) only = lane.front();
  const int looks = yields_due_ == 0 ? spins_ : std::min(spins_, kLooksAtPost);
  for (int i = 0; i < looks; ++i) {
    if (only->ripe() || posts_.load(std::memory_order_relaxed) != nullptr) return true;
    if (i >= kSpinsAtFullSpeed) relax();
  }
  return false;
}

// False: the token is another's now.
bool Engine::idle(Nanoseconds& idle_since) {
  const Nanoseconds now = clock_.now();
  if (idle_since.count() < 0) idle_since = now;
  watch_if_due(now);
  const bool alone = !options_.crowded && yields_due_ == 0;
  if (alone && now - idle_since < std::min(options_.spin, kSpinBeforeYield)) return true;
  bool owner = true;
  const bool only_held = held_until_ && active_count_ == 1;
  if (makes_room_)
    owner = make_room();
  else if (!only_held && may_yield(now - idle_since))
    yield();
  else
    owner = sleep(std::clamp(held_until_.value_or(now + kSleepMax) - now, Nanoseconds(0), kSleepMax));
  if (owner) count_blocked(clock_.now() - now);
  return owner;
}

bool Engine::may_yield(Nanoseconds idle_for) {
  if (sleeps_due_ == 0) return idle_for < options_.spin;
  --sleeps_due_;
  return false;
}

// The cores are for what is more urgent. If that goes on here, it is looked for; else it gets this core without being asked for it.
// False: the token is another's now.
bool Engine::make_room() {
  if (active_count_ > 1) return sched_yield(), true;
  const int number = naps_++;
  const Driving before = pause_driving();
  give_token();
  nap(number);
  return go_on_driving(before);
}

// Nobody is told and nobody need wake us.
void Engine::nap(int number) { std::this_thread::sleep_for(std::min(kNapMin * (1 << std::min(number, 10)), kNapMax)); }

// A peer may want this very core, even if there are enough for all: two yields in a row show it, for one may have met an interrupt.
// Then the next waits yield at once. A yield gives the core to
// whoever wants it, be it for a whole slice of time, while a sleeper is put back when it is woken: the next waits sleep at once when a
// yield was long, for then others compute here than the ranks that are waited for.
void Engine::yield() {
  const Nanoseconds before = clock_.now();
  sched_yield();
  const Nanoseconds away = clock_.now() - before;
  if (away > kLongYield) sleeps_due_ = kSleepsAfterLongYield;
  const bool switched = away > kSwitch;
  yields_due_ = switched && switched_ ? kYieldsAfterSwitch : std::max(0, yields_due_ - 1);
  switched_ = switched;
}

// Without the token: whoever posts meanwhile need not wake us to have its operation begin. False: another has it now.
bool Engine::sleep(Nanoseconds at_most) {
  if (transports_.empty()) {
    std::this_thread::sleep_for(std::min<Nanoseconds>(at_most, std::chrono::milliseconds(1)));
    return true;
  }
  for (Transport* transport : transports_) transport->prepare_wait();
  prepared_ = true;
  if (pass() > 0 || makes_room_) return end_sleep(), true;  // what makes room was not looked at
  for (const Transport* transport : transports_) at_most = std::min(at_most, transport->patience());
  const Driving before = pause_driving();
  {
    const Alarms::Sleeper sleeper(alarms_);
    if (sleeper.fd() < 0) at_most = std::min<Nanoseconds>(at_most, kSleepWithoutAlarm);
    onlookers_.begin_sleep();
    token_.give();
    poll_descriptors(sleeper.fd(), at_most);
    onlookers_.end_sleep();
  }
  return go_on_driving(before);
}

// Less urgent waiters still keep back for us.
Engine::Driving Engine::pause_driving() {
  return {std::exchange(serving_, false), driving_.load(std::memory_order_relaxed)};
}

// False: the token is another's now.
bool Engine::go_on_driving(Driving before) {
  if (!take_token()) return false;
  serving_ = before.serving;
  if (!serving_) driving_.store(before.priority, std::memory_order_relaxed);
  return true;
}

// An event of a transport may be another thread's by the time that we look.
void Engine::poll_descriptors(int alarm, Nanoseconds at_most) const {
  std::array<pollfd, kWaitAnyMax + 1> polled{};
  std::size_t count = 0;
  for (const Transport* transport : transports_) polled[count++] = {transport->wait_fd(), POLLIN, 0};
  polled[count++] = {alarm, POLLIN, 0};
  const timespec timeout = to_timespec(at_most);
  ppoll(polled.data(), count, &timeout, nullptr);  // a signal or an error is an early return
}

void Engine::end_sleep() {
  if (onlookers_.sleepers()) return;
  for (Transport* transport : transports_) transport->cancel_wait();
  prepared_ = false;
}

}  // namespace sluice::detail
