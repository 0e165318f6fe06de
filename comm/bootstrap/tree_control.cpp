#include "comm/bootstrap/tree_control.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/log.h"
#include "comm/bootstrap/control_tree.h"
#include "comm/bootstrap/join_member.h"
#include "comm/bootstrap/join_root.h"
#include "comm/bootstrap/links.h"
#include "comm/bootstrap/notice_sink.h"
#include "comm/bootstrap/root_listener.h"

namespace sluice {
namespace {

constexpr Nanoseconds kAnswerTime = std::chrono::seconds(2);  // beyond the loop's own deadline
constexpr Nanoseconds kFormerRootTime = std::chrono::seconds(2);

// A value that one thread waits for.
class Mailbox {
 public:
  void put(Status value) {
    const std::lock_guard lock(mutex_);
    if (!value_) value_ = std::move(value);
    filled_.notify_all();
  }
  std::optional<Status> wait(Nanoseconds at_most) {
    std::unique_lock lock(mutex_);
    filled_.wait_for(lock, at_most, [&] { return value_.has_value(); });
    return value_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::optional<Status> value_;  // GUARDED_BY(mutex_)
};

class TreeControl final : public Control {
 public:
  TreeControl(std::unique_ptr<EventLoop> loop, JoinPlan plan)
      : plan_(std::move(plan)),
        loop_(std::move(loop)),
        channels_(*loop_, Secret{}, plan_.rank),
        links_(*loop_, channels_, plan_.rank, plan_.link_deadline),
        tree_(*loop_, channels_, plan_.rank, plan_.ranks, plan_.self.host_id, hooks()) {
    loop_->after_each_round([this] { channels_.sweep(); });
  }
  ~TreeControl() override { stop(); }
  TreeControl(const TreeControl&) = delete;
  TreeControl& operator=(const TreeControl&) = delete;

  Status join();

  Rank rank() const override { return plan_.rank; }
  int ranks() const override { return plan_.ranks; }
  const PeerInfo& peer(Rank world_rank) const override { return peers_.at(static_cast<std::size_t>(world_rank)); }

  void on_notice(std::function<void(const Notice&)> handler) override {
    sink_.set(std::move(handler));
    loop_->post([this] { sink_.deliver_unheard(); });
  }
  void flood(Notice notice) override {
    loop_->post([this, notice = std::move(notice)]() mutable { tree_.flood(std::move(notice)); });
  }
  void want_link(LinkId id, LinkClass link) override {
    loop_->post([this, id, link] { links_.want(id, link); });
  }
  void deliver_links_to(LinkClass link, Transport* transport) override {
    loop_->run_there([this, link, transport] { links_.deliver_to(link, transport); });
  }
  void leave() override;

 private:
  ControlTree::Hooks hooks();
  Result<std::vector<Listener>> root_listeners(const Rendezvous& rendezvous) const;
  Status prepare_root();
  Status start_thread();
  void stop();

  JoinPlan plan_;
  std::vector<PeerInfo> peers_;  // written on the loop's thread before joined_ is filled, then constant
  NoticeSink sink_;
  Mailbox joined_;
  Mailbox left_;
  std::unique_ptr<EventLoop> loop_;
  Channels channels_;
  Links links_;
  ControlTree tree_;
  std::optional<JoinRoot> root_;
  std::optional<JoinMember> member_;
  std::vector<Endpoint> root_places_;
  std::thread thread_;
};

ControlTree::Hooks TreeControl::hooks() {
  ControlTree::Hooks hooks;
  hooks.subtree_ready = [this] { root_->subtree_ready(); };
  hooks.table_arrived = [this](std::vector<PeerInfo> peers) {
    peers_ = std::move(peers);
    links_.start(peers_);
    member_->table_arrived();
  };
  hooks.notice = [this](const Notice& notice) { sink_.deliver(notice); };
  hooks.gone = [this](Rank rank, bool lost, const Status& why) { links_.gone(rank, lost, why); };
  return hooks;
}

Status TreeControl::join() {
  const JoinOutcome outcome = [this](const Status& status) { joined_.put(status); };
  if (plan_.rank == 0) {
    SLUICE_TRY(prepare_root());
  } else {
    member_.emplace(*loop_, channels_, tree_, plan_, outcome);
    loop_->post([this] { member_->begin(); });
  }
  SLUICE_TRY(start_thread());
  const auto status = joined_.wait(plan_.deadline + kAnswerTime);
  if (!status) return {Code::timeout, "the control thread of rank " + std::to_string(plan_.rank) + " does not answer"};
  return *status;
}

// A job that is started again by its launcher may find its former rank 0 still ending.
Result<std::vector<Listener>> TreeControl::root_listeners(const Rendezvous& rendezvous) const {
  const Nanoseconds until = loop_->now() + std::min(plan_.deadline, kFormerRootTime);
  while (true) {
    auto listeners = take_root_listeners(rendezvous);
    if (listeners.ok() || listeners.error().code == Code::invalid_argument || loop_->now() >= until) return listeners;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Status TreeControl::prepare_root() {
  SLUICE_TRY_ASSIGN(const Rendezvous rendezvous, plan_.source());
  channels_.change_secret(rendezvous.secret);
  LocalAddress own = local_address_for(rendezvous);
  if (!plan_.interface.empty()) {
    SLUICE_TRY_ASSIGN(const std::vector<InterfaceAddress> interfaces, list_interfaces());
    SLUICE_TRY_ASSIGN(own.listen, choose_address(plan_.interface, interfaces));
    own.told = own.listen;
  }
  SLUICE_TRY_ASSIGN(std::vector<Listener> listeners, root_listeners(rendezvous));
  SLUICE_TRY(open_own_listeners(channels_, own.listen, own.told, plan_.port_range, plan_.self));
  for (Listener& listener : listeners) {
    root_places_.push_back(listener.at);
    SLUICE_TRY(channels_.listen(std::move(listener)));
  }
  root_.emplace(*loop_, channels_, tree_, plan_.ranks, plan_.self, plan_.deadline, [this](const Status& status) {
    if (status.ok()) {
      peers_ = root_->table();
      links_.start(peers_);
    }
    for (const Endpoint& place : root_places_) channels_.stop_listening(place);
    joined_.put(status);
  });
  return {};
}

// Signals are for the program's own threads.
Status TreeControl::start_thread() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status;
  try {
    thread_ = std::thread([this] { loop_->run(); });
    pthread_setname_np(thread_.native_handle(), "sluice-control");
  } catch (const std::system_error& error) {
    status = {Code::out_of_resource, std::string("can't start the control thread: ") + error.what()};
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

void TreeControl::leave() {
  if (!thread_.joinable()) return;
  sink_.set(nullptr);
  loop_->post([this] {
    links_.stop();
    tree_.leave([this] { left_.put({}); });
  });
  if (!left_.wait(kLeaveLinger + kAnswerTime))
    log(LogLevel::warn, plan_.rank, "the control thread does not answer; leaving without a farewell");
  stop();
}

void TreeControl::stop() {
  if (!thread_.joinable()) return;
  loop_->stop();
  thread_.join();
}

}  // namespace

Result<std::unique_ptr<Control>> join_by_plan(JoinPlan plan) {
  SLUICE_TRY_ASSIGN(std::unique_ptr<EventLoop> loop, EventLoop::create());
  auto control = std::make_unique<TreeControl>(std::move(loop), std::move(plan));
  SLUICE_TRY(control->join());
  return std::unique_ptr<Control>(std::move(control));
}

}  // namespace sluice
