// Files that say what several communicators do at once: read, proved, and refused with the reason.
#include "tools/sluice/together.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace sluice::tools {
namespace {

constexpr const char* kTwo =
    "# a tensor group beside the gradients of all\n"
    "operation tp all_reduce:ring 0-1 urgent\n"
    "operation dp all_reduce 0-3 bulk\n";

Status proof_of(const std::string& text) {
  SLUICE_TRY_ASSIGN(const Together all, parse_together(text));
  return verify_composition(all.operations, all.threads, {});
}

TEST(TogetherFile, SaysWhoDoesWhat) {
  const auto all = parse_together(std::string(kTwo) + "calls 0 dp! tp\n\ncalls 0 # nothing\n");
  ASSERT_TRUE(all.ok()) << all.status().text();
  ASSERT_EQ(all->operations.size(), 2U);
  EXPECT_EQ(all->operations[0].members, (std::vector<Rank>{0, 1}));
  EXPECT_EQ(all->operations[0].programs.size(), 2U);
  EXPECT_LT(all->operations[0].priority, all->operations[1].priority);
  ASSERT_EQ(all->threads.size(), 5U) << "two lines of rank 0, and what ranks 1 to 3 post";
  ASSERT_EQ(all->threads[0].calls.size(), 2U);
  EXPECT_EQ(all->threads[0].calls[0].operation, 1U);
  EXPECT_TRUE(all->threads[0].calls[0].blocks);
  EXPECT_FALSE(all->threads[0].calls[1].blocks);
  EXPECT_EQ(all->threads[2].rank, 1);
  EXPECT_EQ(all->threads[2].calls.size(), 2U);
  EXPECT_EQ(all->threads[4].calls.size(), 1U);
}

TEST(TogetherFile, IsProvedOrTheCircleIsNamed) {
  EXPECT_TRUE(proof_of(kTwo).ok());
  EXPECT_TRUE(proof_of(std::string(kTwo) + "calls 0 tp dp\ncalls 1 dp tp\n").ok());
  const Status circle = proof_of(std::string(kTwo) + "calls 0 tp! dp!\ncalls 1 dp! tp!\n");
  ASSERT_FALSE(circle.ok());
  EXPECT_NE(circle.text().find("rank 0 is in 'tp' and waits for rank 1"), std::string::npos) << circle.text();
  EXPECT_NE(circle.text().find("a circle"), std::string::npos) << circle.text();
}

TEST(TogetherFile, ThatIsWrongIsRefusedWithTheLine) {
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "it has no operation"},
           {"frobnicate\n", "line 1: 'frobnicate': a line begins with"},
           {"operation a\n", "line 1: 'a': must be: operation NAME"},
           {"operation a all_reduce 0-3 urgent extra\n", "must be: operation NAME"},
           {"operation a magic 0-3\n", "'magic': must be COLLECTIVE"},
           {"operation a all_reduce:magic 0-3\n", "there are: "},
           {"operation a all_reduce 3-0\n", "'3-0': must be ranks from 0 to 63"},
           {"operation a all_reduce 0,0\n", "'0,0': must be ranks"},
           {"operation a all_reduce 0-64\n", "'0-64': must be ranks"},
           {"operation a all_reduce 0- \n", "'0-': must be ranks"},
           {"operation a all_reduce 0-1 soon\n", "'soon': must be one of control"},
           {"operation a all_reduce 0-1 bulk:3\n", "'bulk:3': must be one of control"},
           {"operation a! all_reduce 0-1\n", "does not end in '!'"},
           {std::string(kTwo) + "operation tp all_reduce 0-1\n", "line 4: 'tp': a name is given once"},
           {std::string(kTwo) + "calls 9x tp\n", "'9x': must be a rank"},
           {std::string(kTwo) + "calls 0 pp\n", "'pp': is no operation"},
           {std::string(kTwo) + "calls 3 tp!\n", "'tp!': rank 3 is not in it"}}) {
    const auto all = parse_together(text);
    ASSERT_FALSE(all.ok()) << text;
    EXPECT_EQ(all.error().code, Code::invalid_argument);
    EXPECT_NE(all.error().text.find(says), std::string::npos) << all.error().text;
  }
}

// Every byte changed, and cut off anywhere: an error or a description, never a crash.
TEST(TogetherFile, ThatIsDamagedNeverHurts) {
  const std::string good = "operation tp all_reduce 0-1 urgent\noperation dp all_gather 0,2 bulk\ncalls 0 tp! dp\n";
  Rng rng(1);
  for (std::size_t at = 0; at < good.size(); ++at)
    for (int i = 0; i < 4; ++i) {
      std::string bad = good;
      bad[at] = static_cast<char>(rng.below(256));
      (void)parse_together(bad);
      (void)parse_together(good.substr(0, at));
    }
}

}  // namespace
}  // namespace sluice::tools
