#include "comm/executor/engine.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <iterator>

#include "base/assert.h"
#include "base/log.h"
#include "comm/executor/communicator_state.h"
#include "transport/poller.h"

namespace sluice::detail {
namespace {

constexpr Nanoseconds kWatchEvery = std::chrono::milliseconds(1);
constexpr Nanoseconds kServeTick = std::chrono::milliseconds(1);
constexpr Nanoseconds kSendingTick = std::chrono::microseconds(100);  // about what a link carries of what it may hold
constexpr Nanoseconds kDrowsyTick = std::chrono::milliseconds(20);
constexpr int kTicksBeforeDrowsy = 100;
constexpr int kOthersTicksMax = 4;
constexpr int kRoundsPerClock = 256;
constexpr int kSpins = 128;
constexpr int kYieldsToOwner = 16;
constexpr Nanoseconds kStandBack = std::chrono::microseconds(300);  // so often at first, then seldom
constexpr Nanoseconds kStandBackLong = std::chrono::milliseconds(20);
constexpr int kStandsBackShort = 100;
constexpr Nanoseconds kWaitForOwnerMax = std::chrono::milliseconds(1);

// Peers write into our memory: what is waited for may come without progress().
bool all_shared_memory(const std::vector<Transport*>& transports) {
  return std::all_of(transports.begin(), transports.end(),
                     [](const Transport* one) { return one->link_class() == LinkClass::shared_memory; });
}

}  // namespace

Engine::Engine(const Clock& clock, std::vector<Transport*> transports, Options options)
    : clock_(clock), transports_(std::move(transports)), options_(options) {
  if (!options_.crowded && all_shared_memory(transports_)) spins_ = kSpins;
  shows_urgency_ = options_.crowded || options_.shares_network;
  SLUICE_ASSERT(transports_.size() <= kWaitAnyMax, "more transports than one wait can take");
  if (!options_.thread) return;
  sigset_t all, before;  // signals are the application's: its handlers do not run on our thread
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  serve_.notify_all();
  wake();
  if (thread_.joinable()) thread_.join();
}

bool Engine::post(Operation* operation) {
  if (take_token()) {
    const bool alone = active_count_ == 0 && posts_.load(std::memory_order_relaxed) == nullptr;
    const bool done = alone && run_alone(*operation);
    if (!done) {
      unfinished_.fetch_add(1, std::memory_order_relaxed);
      take_posts();
      admit(operation);
    }
    if (!done || posts_.load(std::memory_order_relaxed) != nullptr) pass();
    give_token();
    if (done) return true;
  } else {
    unfinished_.fetch_add(1, std::memory_order_relaxed);
    Operation* head = posts_.load(std::memory_order_relaxed);
    do operation->next = head;
    while (!posts_.compare_exchange_weak(head, operation, std::memory_order_release, std::memory_order_relaxed));
    wake();
  }
  if (drowsy_.load(std::memory_order_relaxed)) serve_.notify_one();  // missed at worst for kDrowsyTick
  return false;
}

// Nothing else is under way, so it may run before it was ever queued; but only as far as a turn goes, and while nobody wants anything.
bool Engine::run_alone(Operation& operation) {
  CommunicatorState& communicator = operation.communicator();
  if (!communicator.lane_state().plain) return false;
  int looks = spins_ == 0 ? 0 : kLooksAtPost;
  while (!communicator.broken()) {
    const Advance advance = operation.advance(kStepsAlone);
    if (advance == Advance::done) return !communicator.broken() && communicator.count_done(operation);
    if (advance != Advance::blocked) return false;
    while (looks > 0 && !operation.ripe()) --looks;
    if (--looks < 0 || posts_.load(std::memory_order_relaxed) != nullptr || onlookers_.waiters()) return false;
  }
  return false;
}

void Engine::wait(Operation& operation) {
  if (driver_) return driver_(operation);
  if (operation.communicator().lane_state().pinned && options_.thread) return wait_for_thread(operation);
  waits_.fetch_add(1, std::memory_order_relaxed);
  const std::uint8_t priority = operation.communicator().lane_state().rules.priority;
  const auto done = [&operation] { return operation.finished(); };
  const auto wanted = [&] {
    return wanted_.load(std::memory_order_relaxed) > 0 || (options_.crowded && onlookers_.more_urgent(priority));
  };
  int in_a_row = 0;
  bool left_unsent = false;
  for (int round = 0; !done(); ++round) {
    if (options_.crowded && round > 0 && is_outranked(priority)) {
      if (!stand_back(operation, priority, in_a_row < kStandsBackShort ? kStandBack : kStandBackLong)) ++in_a_row;
      continue;
    }
    in_a_row = 0;
    // Whoever sleeps for all may go on sleeping, once we had a look.
    const bool may_drive = !wanted() && (round == 0 || !onlookers_.sleepers());
    if (may_drive && take_token()) {
      driving_.store(priority, std::memory_order_relaxed);
      const bool owner = drive_until([&] { return done() || wanted(); });
      // Otherwise we slept, and it is of whoever drives now.
      if (driving_.load(std::memory_order_relaxed) == priority) driving_.store(kNobody, std::memory_order_relaxed);
      if (owner) {
        left_unsent = drowsy_.load(std::memory_order_relaxed) && unsent();
        give_token();
      }
    } else {
      onlookers_.begin_wait(priority);
      wait_for_owner(operation, round);
      onlookers_.end_wait(priority);
    }
  }
  // What others posted meanwhile, and what ended but was not sent yet, has nobody now who drives it.
  if (drowsy_.load(std::memory_order_relaxed) && (left_unsent || unfinished_.load(std::memory_order_relaxed) > 0))
    serve_.notify_one();
}

// Somebody waits or drives here for something more urgent, and drives our operation too when there is time for it.
bool Engine::is_outranked(std::uint8_t priority) const {
  return onlookers_.more_urgent(priority) || driving_.load(std::memory_order_relaxed) < priority;
}

// Without a look at anything, for each would take the core from what is more urgent. True: woken, for operations of this priority ended.
bool Engine::stand_back(const Operation& operation, std::uint8_t priority, Nanoseconds at_most) {
  bool woken = true;
  std::unique_lock lock(waiting_mutex_);
  onlookers_.begin_patience();
  patient_[priority].fetch_add(1, std::memory_order_relaxed);
  if (!operation.finished() && is_outranked(priority))
    woken = waiting_.wait_for(lock, at_most) == std::cv_status::no_timeout;
  patient_[priority].fetch_sub(1, std::memory_order_relaxed);
  onlookers_.end_patience();
  return woken;
}

// Somebody else drives, our operation too. If it is the engine's thread, it makes way.
void Engine::wait_for_owner(Operation& operation, int round) {
  if (round == 0) wake();
  if (round < kYieldsToOwner) return void(sched_yield());
  std::unique_lock lock(waiting_mutex_);
  const bool is_seen_to = token_.taken() || onlookers_.sleepers();
  if (!operation.finished() && is_seen_to) waiting_.wait_for(lock, kWaitForOwnerMax);
}

// The only one that may drive it.
void Engine::wait_for_thread(Operation& operation) {
  while (!operation.finished()) {
    serve_.notify_one();
    std::unique_lock lock(waiting_mutex_);
    if (!operation.finished()) waiting_.wait_for(lock, kWaitForOwnerMax);
  }
}

// For a pinned lane; under the token. It may sleep where its transports' events do not wake it, for whoever drives takes them.
void Engine::call_thread() {
  thread_called_ = true;
  if (onlookers_.sleepers()) alarms_.sound();
  serve_.notify_one();
}

void Engine::wake_onlookers() {
  if (onlookers_.waiters()) wake_waiters();
  if (onlookers_.sleepers()) alarms_.sound();
}

void Engine::wake_waiters() {
  const std::lock_guard lock(waiting_mutex_);
  waiting_.notify_all();
}

void Engine::poll() {
  if (!take_token()) return;
  pass();
  watch_if_due(clock_.now());
  give_token();
}

void Engine::with_token(const std::function<void()>& action) {
  onlookers_.begin_wait(0);
  wanted_.fetch_add(1, std::memory_order_relaxed);
  while (!take_token()) {
    wake();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  wanted_.fetch_sub(1, std::memory_order_relaxed);
  onlookers_.end_wait(0);
  action();
  give_token();
}

void Engine::keep_house(std::function<void()> housekeeping) {
  with_token([&] { housekeeping_ = std::move(housekeeping); });
}

void Engine::wake() {
  for (Transport* transport : transports_) transport->wake();
}

void Engine::watch() {
  last_watch_ = clock_.now();
  for (auto& lane : active_)
    for (CommunicatorState* communicator : lane) communicator->watch(last_watch_);
  if (housekeeping_) housekeeping_();
}

void Engine::watch_if_due(Nanoseconds now) {
  if (now - last_watch_ >= kWatchEvery) watch();
}

void Engine::remove(CommunicatorState& communicator) {
  take_posts();
  for (auto& lane : active_) {
    const auto at = std::find(lane.begin(), lane.end(), &communicator);
    if (at == lane.end()) continue;
    lane.erase(at);
    --active_count_;
    if (communicator.lane_state().pinned) pinned_.fetch_sub(1, std::memory_order_relaxed);
  }
  unfinished_.fetch_sub(communicator.fail_all(), std::memory_order_relaxed);
  if (onlookers_.any()) tell_of_end(communicator.lane_state().rules.priority);
  if (shows_urgency_) show_urgency();
}

// Under the token.
template <typename Done>
bool Engine::drive_until(const Done& done) {
  Nanoseconds idle_since{-1};
  for (int round = 0; !done(); ++round) {
    if (round % kRoundsPerClock == kRoundsPerClock - 1) watch_if_due(clock_.now());  // also while others keep us busy
    if (prepared_) end_sleep();
    if (pass() > 0)
      idle_since = Nanoseconds{-1};
    else if (!done() && !spin() && !idle(idle_since))
      return false;
  }
  return true;
}

void Engine::pin(const Cores& cores) {
  if (cores.empty() || !options_.thread) return;
  const std::lock_guard lock(mutex_);
  Cores all;
  std::set_union(cores_.begin(), cores_.end(), cores.begin(), cores.end(), std::back_inserter(all));
  if (all == cores_) return;
  cores_ = all;
  if (const Status pinned = sluice::pin(thread_, cores_); !pinned.ok()) log(LogLevel::warn, -1, pinned.text());
}

// Others drive as long as they want to, except for what only this thread may.
bool Engine::take_turn_of_serving() {
  const bool needed = pinned_.load(std::memory_order_relaxed) != 0;
  const bool others = onlookers_.drivers();
  if (!needed) return !others && take_token();
  wanted_.fetch_add(1, std::memory_order_relaxed);
  const Nanoseconds until = clock_.now() + kServeTick;
  bool taken = take_token();
  for (; !taken && clock_.now() < until; taken = take_token()) sched_yield();
  wanted_.fetch_sub(1, std::memory_order_relaxed);
  return taken;
}

// One turn of the engine's thread.
Engine::Served Engine::serve_once() {
  if (!take_turn_of_serving()) return Served::others;
  serving_ = true;
  thread_called_ = false;
  Served served = Served::busy;
  if (unfinished_.load(std::memory_order_relaxed) > 0) {
    const Nanoseconds until = clock_.now() + kServeTick;
    if (pinned_.load(std::memory_order_relaxed) != 0) pass();  // once at least, for nobody else does it
    const bool owner = drive_until([&] {
      return clock_.now() >= until || onlookers_.waiters() || unfinished_.load(std::memory_order_relaxed) == 0;
    });
    if (!owner) return Served::others;
  } else {
    // What finished operations left behind: links being made, messages that did not fit into a socket.
    if (pass() == 0) served = unsent() ? Served::sending : Served::quiet;
    if (housekeeping_) housekeeping_();
  }
  serving_ = false;
  give_token();
  return served;
}

bool Engine::unsent() const {
  return std::any_of(transports_.begin(), transports_.end(), [](const Transport* one) { return one->unsent(); });
}

// How long the engine's thread may sleep. While callers drive it is hardly needed; what they leave undone is found some ticks later,
// once. Where nothing was to do for long, or one caller waits long, it asks to be woken by the next post.
Nanoseconds Engine::pause_after(Served served, Lull& lull) {
  const std::uint32_t wait = waits_.load(std::memory_order_relaxed);
  lull.quiet = served == Served::quiet ? lull.quiet + 1 : 0;
  lull.others = served == Served::others ? std::min(lull.others + 1, kOthersTicksMax) : 0;
  lull.same_wait = served == Served::others && wait == lull.wait ? lull.same_wait + 1 : 0;
  lull.wait = wait;
  if (served == Served::others && pinned_.load(std::memory_order_relaxed) != 0) return Nanoseconds(0);
  const bool drowsy = lull.quiet > kTicksBeforeDrowsy || lull.same_wait > kOthersTicksMax;
  drowsy_.store(drowsy, std::memory_order_relaxed);
  if (served == Served::sending) return kSendingTick;
  if (drowsy) return kDrowsyTick;
  return lull.others > 0 ? kServeTick * lull.others : kServeTick;
}

// The engine's thread: drives what nobody waits for, and makes way for whoever does.
void Engine::serve() {
  Lull lull;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    const Served served = serve_once();
    lock.lock();
    const Nanoseconds pause = pause_after(served, lull);
    if (served != Served::busy && !stop_) serve_.wait_for(lock, pause);
    drowsy_.store(false, std::memory_order_relaxed);
  }
}

}  // namespace sluice::detail
