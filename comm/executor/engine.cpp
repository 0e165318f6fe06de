#include "comm/executor/engine.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/assert.h"
#include "comm/executor/communicator_state.h"
#include "transport/poller.h"

namespace sluice::detail {
namespace {

constexpr Nanoseconds kWatchEvery = std::chrono::milliseconds(1);
constexpr Nanoseconds kSleepMax = std::chrono::milliseconds(20);
constexpr Nanoseconds kServeTick = std::chrono::milliseconds(1);
constexpr Nanoseconds kDrowsyTick = std::chrono::milliseconds(20);
constexpr int kTicksBeforeDrowsy = 100;
constexpr int kOthersTicksMax = 4;
constexpr Nanoseconds kSpinBeforeYield = std::chrono::microseconds(5);
constexpr Nanoseconds kLongYield = std::chrono::milliseconds(2);  // a slice of who computes, not turns of who waits
constexpr int kSleepsAfterLongYield = 100;
constexpr Nanoseconds kSwitch = std::chrono::nanoseconds(1500);  // more than a yield to nobody mostly takes
constexpr int kYieldsAfterSwitch = 50;
constexpr int kRoundsPerClock = 256;
constexpr int kSpins = 128;
constexpr int kYieldsToOwner = 16;
constexpr Nanoseconds kWaitForOwnerMax = std::chrono::milliseconds(1);
constexpr int kLooksAtPost = 24;  // about as long as a cache line needs to come from a peer that posts now
constexpr int kSpinsAtFullSpeed = 32;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

// Peers write into our memory: what is waited for may come without progress().
bool all_shared_memory(const std::vector<Transport*>& transports) {
  return std::all_of(transports.begin(), transports.end(),
                     [](const Transport* one) { return one->link_class() == LinkClass::shared_memory; });
}

}  // namespace

Engine::Engine(const Clock& clock, std::vector<Transport*> transports, Options options)
    : clock_(clock), transports_(std::move(transports)), options_(options) {
  if (!options_.crowded && all_shared_memory(transports_)) spins_ = kSpins;
  alarm_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  SLUICE_ASSERT(alarm_, "an eventfd for whoever sleeps can be made");
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
  if (communicator.lane_state().ceiling) return false;
  int looks = spins_ == 0 ? 0 : kLooksAtPost;
  while (!communicator.broken()) {
    const Advance advance = operation.advance(kStepsAlone);
    if (advance == Advance::done) return !communicator.broken() && communicator.count_done(operation);
    if (advance != Advance::blocked) return false;
    while (looks > 0 && !operation.ripe()) --looks;
    if (--looks < 0 || posts_.load(std::memory_order_relaxed) != nullptr ||
        waiters_.load(std::memory_order_relaxed) > 0)
      return false;
  }
  return false;
}

void Engine::wait(Operation& operation) {
  if (driver_) return driver_(operation);
  waits_.fetch_add(1, std::memory_order_relaxed);
  const auto done = [&operation] { return operation.finished(); };
  const auto wanted = [this] { return wanted_.load(std::memory_order_relaxed) > 0; };
  for (int round = 0; !done(); ++round) {
    // Whoever sleeps for all may go on sleeping, once we had a look.
    const bool may_drive = !wanted() && (round == 0 || sleepers_.load(std::memory_order_relaxed) == 0);
    if (may_drive && take_token()) {
      if (drive_until([&] { return done() || wanted(); })) give_token();
    } else {
      waiters_.fetch_add(1, std::memory_order_relaxed);
      wait_for_owner(operation, round);
      waiters_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  // What others posted meanwhile has nobody now who drives it.
  if (drowsy_.load(std::memory_order_relaxed) && unfinished_.load(std::memory_order_relaxed) > 0) serve_.notify_one();
}

// Somebody else drives, our operation too. If it is the engine's thread, it makes way.
void Engine::wait_for_owner(Operation& operation, int round) {
  if (round == 0) wake();
  if (round < kYieldsToOwner) return void(sched_yield());
  std::unique_lock lock(waiting_mutex_);
  const bool is_seen_to = token_.taken() || sleepers_.load(std::memory_order_relaxed) > 0;
  if (!operation.finished() && is_seen_to) waiting_.wait_for(lock, kWaitForOwnerMax);
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
  waiters_.fetch_add(1, std::memory_order_relaxed);
  wanted_.fetch_add(1, std::memory_order_relaxed);
  while (!take_token()) {
    wake();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  wanted_.fetch_sub(1, std::memory_order_relaxed);
  waiters_.fetch_sub(1, std::memory_order_relaxed);
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
  }
  unfinished_.fetch_sub(communicator.fail_all(), std::memory_order_relaxed);
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
  if (held_until_)
    owner = sleep(std::clamp<Nanoseconds>(*held_until_ - now, Nanoseconds(0), kSleepMax));
  else if (may_yield(now - idle_since))
    yield();
  else
    owner = sleep(kSleepMax);
  if (owner) count_blocked(clock_.now() - now);
  return owner;
}

bool Engine::may_yield(Nanoseconds idle_for) {
  if (sleeps_due_ == 0) return idle_for < options_.spin;
  --sleeps_due_;
  return false;
}

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
  if (pass() > 0) return end_sleep(), true;
  for (const Transport* transport : transports_) at_most = std::min(at_most, transport->patience());
  sleepers_.fetch_add(1, std::memory_order_relaxed);
  token_.give();
  poll_descriptors(at_most);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return take_token();
}

// An event of a transport may be another thread's by the time that we look, and an alarm is everybody's until the last sleeper woke.
void Engine::poll_descriptors(Nanoseconds at_most) const {
  std::array<pollfd, kWaitAnyMax + 1> polled{};
  std::size_t count = 0;
  for (const Transport* transport : transports_) polled[count++] = {transport->wait_fd(), POLLIN, 0};
  polled[count++] = {alarm_.get(), POLLIN, 0};
  const timespec timeout = to_timespec(at_most);
  ppoll(polled.data(), count, &timeout, nullptr);  // a signal or an error is an early return
}

void Engine::sound_alarm() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(alarm_.get(), &one, sizeof one);  // full: it sounds already
}

void Engine::stop_alarm() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(alarm_.get(), &count, sizeof count);  // empty: it did not sound
}

void Engine::end_sleep() {
  if (sleepers_.load(std::memory_order_relaxed) != 0) return;
  stop_alarm();  // under the token: nobody sounds it for somebody who is not asleep yet
  for (Transport* transport : transports_) transport->cancel_wait();
  prepared_ = false;
}

// One turn of the engine's thread.
Engine::Served Engine::serve_once() {
  const bool others = waiters_.load(std::memory_order_relaxed) > 0 || sleepers_.load(std::memory_order_relaxed) > 0;
  if (others || !take_token()) return Served::others;
  bool busy = unfinished_.load(std::memory_order_relaxed) > 0;
  if (busy) {
    const Nanoseconds until = clock_.now() + kServeTick;
    const bool owner = drive_until([&] {
      return clock_.now() >= until || waiters_.load(std::memory_order_relaxed) > 0 ||
             unfinished_.load(std::memory_order_relaxed) == 0;
    });
    if (!owner) return Served::others;
  } else {
    busy =
        pass() > 0;  // what finished operations left behind: links being made, messages that did not fit into a socket
    if (housekeeping_) housekeeping_();
  }
  give_token();
  return busy ? Served::busy : Served::quiet;
}

// How long the engine's thread may sleep. While callers drive it is hardly needed; what they leave undone is found some ticks later,
// once. Where nothing was to do for long, or one caller waits long, it asks to be woken by the next post.
Nanoseconds Engine::pause_after(Served served, Lull& lull) {
  const std::uint32_t wait = waits_.load(std::memory_order_relaxed);
  lull.quiet = served == Served::quiet ? lull.quiet + 1 : 0;
  lull.others = served == Served::others ? std::min(lull.others + 1, kOthersTicksMax) : 0;
  lull.same_wait = served == Served::others && wait == lull.wait ? lull.same_wait + 1 : 0;
  lull.wait = wait;
  const bool drowsy = lull.quiet > kTicksBeforeDrowsy || lull.same_wait > kOthersTicksMax;
  drowsy_.store(drowsy, std::memory_order_relaxed);
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
