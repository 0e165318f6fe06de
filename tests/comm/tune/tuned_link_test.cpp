// Measured times are used where every rank holds the same, and whoever holds others is named.
#include "comm/tune/tuned_link.h"

#include <gtest/gtest.h>

#include "comm/executor/runtime_state.h"
#include "comm/tune/tuning_store.h"
#include "tests/comm/executor/rank_threads.h"
#include "tests/comm/tune/scratch_folder.h"

namespace sluice {
namespace {

using test::made_up;
using test::ScratchFolder;

// Knows peers and nothing else.
class TablePeers final : public Control {
 public:
  explicit TablePeers(std::vector<PeerInfo> peers) : peers_(std::move(peers)) {}
  Rank rank() const override { return 0; }
  int ranks() const override { return static_cast<int>(peers_.size()); }
  const PeerInfo& peer(Rank world_rank) const override { return peers_.at(static_cast<std::size_t>(world_rank)); }
  void on_notice(std::function<void(const Notice&)>) override {}
  void flood(Notice) override {}
  void want_link(LinkId, LinkClass) override {}
  void deliver_links_to(LinkClass, Transport*) override {}
  void leave() override {}

 private:
  std::vector<PeerInfo> peers_;
};

PeerInfo peer(std::uint64_t host, std::uint64_t process, std::uint64_t tuning) {
  PeerInfo info;
  info.host_name = "host" + std::to_string(host);
  info.host_id = host;
  info.process_id = process;
  info.pid = static_cast<std::uint32_t>(process);
  info.tuning = tuning;
  return info;
}

TEST(TunedLink, TimesServeRanksOfOneHostThatHoldTheSame) {
  MachineFile file = made_up(Collective::all_reduce, "ring");
  file.link(LinkKind::tcp)->latency_seconds = 3e-5;
  const TablePeers table({peer(1, 10, 7), peer(1, 11, 7), peer(1, 12, 8), peer(2, 13, 7), peer(1, 10, 7)});
  const LinkModel predicted;
  const auto measures = [&](const std::vector<Rank>& members, bool shared_memory) {
    return tuned_link(predicted, &file, table, members, shared_memory).measures;
  };
  EXPECT_EQ(measures({0, 1}, true), &*file.link(LinkKind::processes));
  EXPECT_EQ(measures({0, 4}, true), &*file.link(LinkKind::threads));
  EXPECT_EQ(measures({0, 1}, false), &*file.link(LinkKind::tcp));
  EXPECT_EQ(tuned_link(predicted, &file, table, {0, 1}, false).latency_seconds, 3e-5);
  EXPECT_EQ(measures({0, 1, 2}, true), nullptr) << "rank 2 holds another file";
  EXPECT_EQ(measures({0, 3}, true), nullptr) << "rank 3 is on another host";
  EXPECT_EQ(measures({0}, true), nullptr);
  EXPECT_EQ(tuned_link(predicted, nullptr, table, {0, 1}, true).measures, nullptr);
  file.link(LinkKind::processes).reset();
  EXPECT_EQ(measures({0, 1}, true), nullptr) << "such links were not measured";
}

TEST(TunedLink, NamesTheFirstRankThatDiffers) {
  EXPECT_EQ(tuning_difference(TablePeers({peer(1, 1, 7), peer(2, 2, 8), peer(1, 3, 7)})), "") << "hosts may differ";
  const std::string text = tuning_difference(TablePeers({peer(1, 1, 7), peer(2, 2, 7), peer(1, 3, 8), peer(1, 4, 9)}));
  EXPECT_NE(text.find("rank 2 (host1, process 3) differs from rank 0"), std::string::npos) << text;
  EXPECT_NE(text.find("another one"), std::string::npos) << text;
  const std::string none = tuning_difference(TablePeers({peer(1, 1, 7), peer(1, 2, 0)}));
  EXPECT_NE(none.find("it has none"), std::string::npos) << none;
}

std::string chosen(Runtime& runtime, int ranks) {
  std::vector<Rank> members;
  for (Rank rank = 0; rank < ranks; ++rank) members.push_back(rank);
  TuneRequest request;
  request.ranks = ranks;
  request.bytes = 4096;
  return std::string(choose(request, runtime.state()->link_model(members))->name);
}

std::string sum_of_ones(Runtime& runtime) {
  Communicator world = runtime.world();
  std::vector<float> values(1024, 1);
  const Status done =
      world.all_reduce({values.data(), values.data(), values.size(), DataType::float32}, ReduceOp::sum).wait();
  if (!done.ok()) return done.text();
  return values.back() == static_cast<float>(world.ranks()) ? world.close().text() : "a wrong sum";
}

TEST(TunedRuntime, AFileDecidesTheChoiceOfAllRanks) {
  const ScratchFolder folder;
  for (const char* favourite : {"ring", "one_shot", "binomial_tree"}) {
    const std::string path = folder.file(favourite, print(made_up(Collective::all_reduce, favourite)));
    for (const char* transport : {"shm", "tcp"}) {
      const std::string wrong = test::run_ranks(
          {.ranks = 2, .transport = transport, .settings = {{Setting::tuning, path}}}, [&](Runtime& runtime) {
            const std::string name = chosen(runtime, 2);
            return name == favourite ? sum_of_ones(runtime) : "it chose " + name;
          });
      EXPECT_EQ(wrong, "") << favourite << " over " << transport;
    }
  }
}

// Runs two threads as ranks, each with its own value of the setting.
std::string run_with(const std::vector<std::string>& tuning, const std::function<std::string(Runtime&)>& body) {
  auto id = Control::make_unique_id(Config());
  if (!id.ok()) return id.error().text;
  std::vector<std::string> wrong(tuning.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < tuning.size(); ++i)
    threads.emplace_back([&, i] {
      RuntimeOptions options;
      if (const Status set = options.config.set(Setting::tuning, tuning[i], Origin::file); !set.ok())
        die_of(set.error());
      auto runtime = Runtime::join(*id, static_cast<Rank>(i), static_cast<int>(tuning.size()), options);
      wrong[i] = runtime.ok() ? body(**runtime) : runtime.error().text;
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : wrong)
    if (!one.empty()) return one;
  return {};
}

TEST(TunedRuntime, RanksWithDifferentFilesAreNamedAndPredict) {
  const ScratchFolder folder;
  const std::string ring = folder.file("ring", print(made_up(Collective::all_reduce, "ring")));
  const std::string tree = folder.file("tree", print(made_up(Collective::all_reduce, "binomial_tree")));
  std::string predicted;
  ASSERT_EQ(run_with({"off", "off"},
                     [&](Runtime& runtime) {
                       if (runtime.world().rank() == 0) predicted = chosen(runtime, 2);
                       return sum_of_ones(runtime);
                     }),
            "");
  for (const std::string& other : {tree, std::string("off")}) {
    testing::internal::CaptureStderr();
    const std::string wrong = run_with({ring, other}, [&](Runtime& runtime) {
      const std::string name = chosen(runtime, 2);
      return name == predicted ? sum_of_ones(runtime) : "it chose " + name;
    });
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(wrong, "");
    EXPECT_NE(said.find("rank 1 ("), std::string::npos) << said;
    EXPECT_NE(said.find("differs from rank 0 in its tuning file"), std::string::npos) << said;
  }
}

TEST(TunedRuntime, ARefusedFileIsSaidOnceAndPredictionsServe) {
  const ScratchFolder folder;
  const std::string path = folder.file("damaged", "sluice tuning 1\nmachine 12\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_with({path, path}, sum_of_ones), "");
  const std::string said = testing::internal::GetCapturedStderr();
  const auto first = said.find("tuning file " + path + ", line 2: machine is '12'");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("line 2", first + path.size() + 30), std::string::npos) << said;
}

}  // namespace
}  // namespace sluice
