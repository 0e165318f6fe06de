// The choice against a second, dumber computation: by the model, by times, and between the two.
#include "comm/tune/tune.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/comm/tune/scratch_folder.h"

namespace sluice {
namespace {

TuneRequest request(int ranks, double bytes, Collective collective = Collective::all_reduce) {
  return {
      .collective = collective, .ranks = ranks, .order = Order::fast, .uneven = false, .reduces = true, .bytes = bytes};
}

LinkMeasures measures(std::vector<TimeCurve> curves) {
  LinkMeasures link;
  link.latency_seconds = 1e-6;
  link.bytes_per_second = 5e9;
  link.combine_bytes_per_second = 8e9;
  link.curves = std::move(curves);
  return link;
}

LinkModel model_of(const LinkMeasures& link) {
  return {link.latency_seconds, link.bytes_per_second, link.combine_bytes_per_second, &link};
}

const Algorithm* all_reduce(std::string_view name) { return find_algorithm(Collective::all_reduce, name); }

TEST(Tune, WithoutTimesTheModelDecides) {
  const LinkModel link{1e-6, 5e9, 8e9, nullptr};
  for (const int ranks : {2, 3, 8})
    for (const double bytes : {8.0, 4096.0, 1e7}) {
      const auto all = predict(request(ranks, bytes), link);
      ASSERT_FALSE(all.empty());
      const Algorithm* cheapest = nullptr;
      double least = INFINITY;
      for (const Algorithm& one : all_algorithms()) {
        if (one.collective != Collective::all_reduce) continue;
        const AlgorithmCost cost = one.cost(ranks, bytes);
        const double seconds = cost.rounds * 1e-6 + cost.sent_bytes / 5e9 + cost.combined_bytes / 8e9;
        if (seconds < least) cheapest = &one, least = seconds;
      }
      EXPECT_EQ(all.front().algorithm, cheapest);
      EXPECT_EQ(all.front().source, TimeSource::predicted);
      EXPECT_NEAR(all.front().seconds, least, 1e-12);
    }
}

TEST(Tune, TimesLieOnAStraightLineInTheLogarithms) {
  const std::vector<TimePoint> points{{64, 1e-6}, {4096, 4e-6}, {65536, 4e-6}};
  EXPECT_DOUBLE_EQ(interpolate(points, 0), 1e-6);
  EXPECT_DOUBLE_EQ(interpolate(points, 64), 1e-6);
  EXPECT_NEAR(interpolate(points, 512), 2e-6, 1e-12);  // half way in the logarithm: the geometric mean
  EXPECT_DOUBLE_EQ(interpolate(points, 4096), 4e-6);
  EXPECT_NEAR(interpolate(points, 9999), 4e-6, 1e-12);
  EXPECT_NEAR(interpolate(points, 131072), 8e-6, 1e-12);  // in proportion beyond the last
  EXPECT_DOUBLE_EQ(interpolate(std::vector<TimePoint>{{64, 1e-6}}, 128), 2e-6);
}

TEST(Tune, TheCrossoverIsWhereTheLinesMeet) {
  // t1 = 1 us * (bytes/64)^(1/2), t2 = 8 us at every size: they meet at 64 * 8^2 = 4096.
  const LinkMeasures link = measures({{all_reduce("ring"), 2, {{64, 1e-6}, {1 << 18, 64e-6}}},
                                      {all_reduce("two_shot"), 2, {{64, 8e-6}, {1 << 18, 8e-6}}}});
  EXPECT_EQ(choose(request(2, 64), model_of(link))->name, "ring");
  EXPECT_EQ(choose(request(2, 3600), model_of(link))->name, "ring");
  EXPECT_EQ(choose(request(2, 4700), model_of(link))->name, "two_shot");
  EXPECT_EQ(choose(request(2, 1 << 18), model_of(link))->name, "two_shot");
}

TEST(Tune, OfTimesThatAreAsGoodTheModelDecides) {
  const double bytes = 1 << 20;
  const auto modelled = [&](std::string_view name) {
    const AlgorithmCost cost = all_reduce(name)->cost(4, bytes);
    return cost.rounds * 1e-6 + cost.sent_bytes / 5e9 + cost.combined_bytes / 8e9;
  };
  ASSERT_LT(modelled("two_shot"), modelled("one_shot"));
  for (const auto& [two_shot, expected] :
       std::initializer_list<std::pair<double, const char*>>{{1.04e-3, "two_shot"}, {1.06e-3, "one_shot"}}) {
    const LinkMeasures link =
        measures({{all_reduce("one_shot"), 4, {{1 << 20, 1e-3}}}, {all_reduce("two_shot"), 4, {{1 << 20, two_shot}}}});
    EXPECT_EQ(choose(request(4, bytes), model_of(link))->name, expected) << two_shot;
  }
}

TEST(Tune, AMeasurementIsPreferredToAPrediction) {
  const LinkMeasures link =
      measures({{all_reduce("ring"), 2, {{64, 10.0}}}});  // so slow that every prediction is faster
  const auto all = predict(request(2, 64), model_of(link));
  EXPECT_EQ(all.front().algorithm, all_reduce("ring"));
  EXPECT_EQ(all.front().source, TimeSource::measured);
  EXPECT_EQ(all[1].source, TimeSource::predicted);
  // Of another collective nothing was measured.
  EXPECT_EQ(predict(request(2, 64, Collective::broadcast), model_of(link)).front().source, TimeSource::predicted);
}

TEST(Tune, ARefusedAlgorithmIsNotChosenForItsTime) {
  const LinkMeasures link =
      measures({{all_reduce("two_shot"), 2, {{64, 1e-3}}}, {all_reduce("ring"), 2, {{64, 1e-9}}}});
  TuneRequest canonical = request(2, 64);
  EXPECT_EQ(choose(canonical, model_of(link))->name, "ring");
  canonical.order = Order::canonical;
  EXPECT_EQ(choose(canonical, model_of(link))->name, "two_shot");
}

TEST(Tune, OtherRanksAreScaledFromTheNearest) {
  const double bytes = 1 << 20;
  const LinkMeasures link =
      measures({{all_reduce("ring"), 2, {{1 << 20, 3e-3}}}, {all_reduce("ring"), 8, {{1 << 20, 9e-3}}}});
  const auto modelled = [bytes](int ranks) {
    const AlgorithmCost cost = all_reduce("ring")->cost(ranks, bytes);
    return cost.rounds * 1e-6 + cost.sent_bytes / 5e9 + cost.combined_bytes / 8e9;
  };
  for (const auto& [ranks, nearest, seconds] :
       std::initializer_list<std::tuple<int, int, double>>{{3, 2, 3e-3}, {5, 8, 9e-3}, {12, 8, 9e-3}, {16, 8, 9e-3}}) {
    const Prediction first = predict(request(ranks, bytes), model_of(link)).front();
    EXPECT_EQ(first.source, TimeSource::scaled) << ranks;
    EXPECT_EQ(first.measured_ranks, nearest) << ranks;
    EXPECT_NEAR(first.seconds, seconds * modelled(ranks) / modelled(nearest), 1e-9) << ranks;
  }
  EXPECT_EQ(predict(request(17, bytes), model_of(link)).front().source, TimeSource::predicted);
  EXPECT_EQ(predict(request(8, bytes), model_of(link)).front().source, TimeSource::measured);
}

TEST(Tune, AMadeUpFileChangesTheChoice) {
  for (const char* favourite : {"ring", "one_shot", "binomial_tree"}) {
    const MachineFile file = test::made_up(Collective::all_reduce, favourite);
    for (const auto& link : file.links) EXPECT_EQ(choose(request(2, 4096), model_of(*link))->name, favourite);
  }
}

}  // namespace
}  // namespace sluice
