// No byte is used twice or skipped within an epoch, for any layout; held-out bytes are never trained on.
#include "layers/data/byte_data.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/rng.h"
#include "layers/data/sample_order.h"

namespace sluice {
namespace {

TEST(SampleOrder, TakesEverySampleOnce) {
  for (const std::uint64_t samples : {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097})
    for (const std::uint64_t epoch : {0, 1, 2}) {
      const SampleOrder order(samples, 7, epoch);
      std::set<std::uint64_t> seen;
      for (std::uint64_t i = 0; i < samples; ++i) seen.insert(order(i));
      EXPECT_EQ(seen.size(), samples);
      EXPECT_EQ(*seen.rbegin(), samples - 1);
    }
}

TEST(SampleOrder, DiffersBySeedAndEpochAndIsNoIdentity) {
  const SampleOrder one(1000, 1, 0), seed(1000, 2, 0), epoch(1000, 1, 1);
  int same_seed = 0, same_epoch = 0, fixed = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    same_seed += one(i) == seed(i);
    same_epoch += one(i) == epoch(i);
    fixed += one(i) == i;
  }
  for (const int same : {same_seed, same_epoch, fixed}) EXPECT_LT(same, 12);  // one is expected by chance
}

// A text in which every pair of neighbours says where it is: bytes of a counter would repeat, so positions are found by content.
std::vector<std::uint8_t> text_of(std::size_t bytes) {
  std::vector<std::uint8_t> text(bytes);
  Rng rng(1);
  for (std::uint8_t& byte : text) byte = static_cast<std::uint8_t>(rng.below(256));
  return text;
}

// Where in the text the window of a batch's row lies, found by looking for its bytes; the whole text is random.
std::size_t find_window(const std::vector<std::uint8_t>& text, const Batch& batch, Index row) {
  std::vector<std::uint8_t> window;
  for (Index i = 0; i < batch.length && batch.targets[row * batch.length + i] != kNotCounted; ++i)
    window.push_back(static_cast<std::uint8_t>(batch.targets[row * batch.length + i]));
  const auto found = std::search(text.begin(), text.end(), window.begin(), window.end());
  EXPECT_NE(found, text.end());
  const auto position = static_cast<std::size_t>(found - text.begin());
  for (std::size_t i = 0; i < window.size(); ++i)
    EXPECT_EQ(batch.inputs[static_cast<std::size_t>(row * batch.length) + i],
              position + i > 0 ? text[position + i - 1] : '\n');
  return position;
}

struct Uses {
  std::vector<int> of_byte;
  std::vector<std::size_t> order;  // position of each sample, in global order
};

// Walks steps until `epochs` are over, over all ranks of a layout, and counts how often each byte is a target.
Uses walk(const std::vector<std::uint8_t>& text, const ByteData& data, Index batch, int dp, int epochs) {
  Uses uses{std::vector<int>(text.size(), 0), {}};
  const std::uint64_t all = data.samples() * static_cast<std::uint64_t>(epochs);
  for (std::uint64_t first = 0; first < all; first += static_cast<std::uint64_t>(batch)) {
    std::uint64_t sample = first;
    for (int rank = 0; rank < dp; ++rank) {
      const Batch share = data.batch(first, batch, rank, dp);
      for (Index row = 0; row < share.sequences; ++row, ++sample) {
        if (sample >= all) continue;  // the last step of the walk may reach into the next epoch
        const std::size_t position = find_window(text, share, row);
        uses.order.push_back(position);
        for (Index i = 0; i < share.length && share.targets[row * share.length + i] != kNotCounted; ++i)
          ++uses.of_byte[position + static_cast<std::size_t>(i)];
      }
    }
    EXPECT_EQ(sample, first + static_cast<std::uint64_t>(batch));
  }
  return uses;
}

TEST(ByteData, AnEpochUsesEachTrainingByteOnceForAnyLayout) {
  for (const std::size_t bytes : {1000, 1013})
    for (const Index length : {7, 16, 64})
      for (const Index batch : {1, 3, 8})
        for (const int dp : {1, 2, 3, 4, 5}) {
          const auto text = text_of(bytes);
          const auto data = ByteData::create(text, {length, 0.1, 5});
          ASSERT_TRUE(data.ok());
          const Uses uses = walk(text, *data, batch, dp, 2);
          for (std::size_t i = 0; i < text.size(); ++i)
            ASSERT_EQ(uses.of_byte[i], i < data->training_bytes() ? 2 : 0)
                << "byte " << i << ", " << length << " a sample, batch " << batch << ", dp " << dp;
        }
}

TEST(ByteData, TheOrderOfSamplesDoesNotDependOnLayoutOrBatch) {
  const auto text = text_of(1013);
  const auto data = ByteData::create(text, {16, 0.1, 5});
  const auto want = walk(text, *data, 1, 1, 2).order;
  for (const Index batch : {3, 4, 8})
    for (const int dp : {1, 2, 3, 4}) EXPECT_EQ(walk(text, *data, batch, dp, 2).order, want) << batch << " over " << dp;
  const std::vector<std::size_t> first(want.begin(), want.begin() + static_cast<long>(data->samples()));
  const std::vector<std::size_t> second(want.begin() + static_cast<long>(data->samples()), want.end());
  EXPECT_NE(first, second);  // epochs differ
}

TEST(ByteData, RanksCountEveryTargetOfTheBatch) {
  const auto text = text_of(1013);
  const auto data = ByteData::create(text, {16, 0, 5});
  for (std::uint64_t first = 0; first < data->samples(); first += 5) {
    std::int64_t parts = 0;
    for (int rank = 0; rank < 3; ++rank) parts += data->batch(first, 5, rank, 3).counted();
    EXPECT_EQ(parts, data->batch(first, 5, 0, 1).counted());
  }
}

TEST(ByteData, HeldOutWindowsLieInTheHeldOutPartAndAreSpread) {
  const auto text = text_of(2000);
  const auto data = ByteData::create(text, {16, 0.25, 5});
  EXPECT_EQ(data->training_bytes(), 1500u);
  std::set<std::size_t> positions;
  for (int rank = 0; rank < 3; ++rank) {
    const Batch share = data->held_out(8, rank, 3);
    for (Index row = 0; row < share.sequences; ++row) {
      // Inputs reach one byte back; a window that begins the part has a line feed there.
      for (Index i = 0; i < share.length; ++i) ASSERT_NE(share.targets[row * share.length + i], kNotCounted);
      std::vector<std::uint8_t> window(share.targets.begin() + row * 16, share.targets.begin() + row * 16 + 16);
      const auto found = std::search(text.begin(), text.end(), window.begin(), window.end());
      positions.insert(static_cast<std::size_t>(found - text.begin()));
    }
  }
  EXPECT_EQ(positions.size(), 8u);
  EXPECT_GE(*positions.begin(), 1500u);
  EXPECT_GT(*positions.rbegin(), 1900u);
}

TEST(ByteData, HeldOutWindowsMayBeFewerThanAskedFor) {
  const auto text = text_of(100);
  const auto data = ByteData::create(text, {16, 0.2, 5});
  EXPECT_EQ(data->held_out(50, 0, 1).sequences, 2);
  EXPECT_EQ(data->held_out(50, 0, 1).counted(), 20);
  EXPECT_EQ(ByteData::create(text, {16, 0, 5})->held_out(50, 0, 1).sequences, 0);
}

TEST(ByteData, RefusesWhatCannotBeSampled) {
  const auto text = text_of(100);
  EXPECT_EQ(ByteData::create({}, {16, 0, 1}).error().code, Code::invalid_argument);
  EXPECT_EQ(ByteData::create(text, {0, 0, 1}).error().code, Code::invalid_argument);
  EXPECT_EQ(ByteData::create(text, {16, 1, 1}).error().code, Code::invalid_argument);
  EXPECT_NE(ByteData::create(text, {16, -0.5, 1}).error().text.find("-0.5"), std::string::npos);
}

}  // namespace
}  // namespace sluice
