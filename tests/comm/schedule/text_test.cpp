// The text form against hand-written text, and the parser against what people and programs get wrong.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "comm/schedule/schedule.h"

namespace sluice {
namespace {

constexpr std::string_view kHead = "sluice schedule 1\nname t\nshape all_reduce ranks 2 chunks 1 root 0 scratch 1\n";

std::string refusal(std::string_view text) {
  const auto parsed = parse_schedule(text);
  return parsed.ok() ? "parsed" : parsed.error().text;
}
std::string refusal_of_steps(std::string_view steps) { return refusal(std::string(kHead) + std::string(steps)); }

TEST(ScheduleText, IsWhatPeopleWouldWrite) {
  ScheduleBuilder builder("example", {Collective::all_reduce, 3, 1, 0, 1});
  const Place in0{0, Buffer::input, 0}, in1{1, Buffer::input, 0}, in2{2, Buffer::input, 0};
  const Place scratch1{1, Buffer::scratch, 0}, out0{0, Buffer::output, 0}, out1{1, Buffer::output, 0},
      out2{2, Buffer::output, 0};
  builder.reduce(in0, in1, scratch1);
  builder.combine(std::vector{scratch1, in2}, std::vector{out2, out1}, Tree::canonical, 1);
  builder.together([&] {
    builder.copy(out1, out0);
    builder.copy(in2, scratch1);
  });
  const auto schedule = std::move(builder).build();
  ASSERT_TRUE(schedule.ok()) << schedule.error().text;
  const std::string text = print(*schedule);
  EXPECT_EQ(text,
            "sluice schedule 1\n"
            "name example\n"
            "shape all_reduce ranks 3 chunks 1 root 0 scratch 1\n"
            "@0 r0.in.0 + r1.in.0 -> r1.scratch.0\n"
            "@1 r1.scratch.0 + r2.in.0 -> r2.out.0, r1.out.0 by r1 tree canonical\n"
            "{\n"
            "@2 r1.out.0 -> r0.out.0\n"
            "@2 r2.in.0 -> r1.scratch.0\n"
            "}\n");
  EXPECT_TRUE(*parse_schedule(text) == *schedule);
}

TEST(ScheduleText, MayHaveCommentsBlanksAndNoLevels) {
  const auto parsed = parse_schedule(
      "# by hand\r\n\nsluice schedule 1  # version\r\n  name t\nshape all_reduce ranks 2 chunks 1 root 0 scratch 1\n"
      "\n{ # both at once\n r0.in.0+r1.in.0->r0.out.0\n\tr0.in.0 + r1.in.0 -> r1.out.0 tree chain\n}");
  ASSERT_TRUE(parsed.ok()) << parsed.error().text;
  EXPECT_EQ(parsed->steps.size(), 2u);
  EXPECT_EQ(parsed->steps[1].moment, 0);
}

TEST(ScheduleText, OfOneRankSaysSo) {
  ScheduleBuilder builder("t", {Collective::broadcast, 2, 1, 0, 0}, 1);
  EXPECT_NE(print(*std::move(builder).build()).find("# only the steps that touch r1\n"), std::string::npos);
}

TEST(ScheduleParser, NamesLineAndFault) {
  EXPECT_EQ(refusal(""), "schedule text, line 0: expected 'sluice schedule 1'");
  EXPECT_EQ(refusal("sluice schedule 2\n"), "schedule text, line 1: expected 'sluice schedule 1'");
  EXPECT_EQ(refusal("sluice schedule 1\nshape all_reduce"), "schedule text, line 2: expected 'name WORD'");
  EXPECT_EQ(refusal("sluice schedule 1\nname a b\n"),
            "schedule text, line 2: a name is one word, but there is also 'b'");
  EXPECT_EQ(refusal("sluice schedule 1\nname a\nshape sum ranks 2"), "schedule text, line 3: unknown collective 'sum'");
  EXPECT_EQ(refusal("sluice schedule 1\nname a\nshape reduce ranks 2 chunks -1 root 0 scratch 0"),
            "schedule text, line 3: expected 'shape COLLECTIVE ranks N chunks N root N scratch N'");
  EXPECT_EQ(refusal_of_steps("r0.in.0 -> r0.tmp.0"),
            "schedule text, line 4: expected 'PLACE + ... -> PLACE, ...' with places like r0.in.0, r1.out.2, "
            "r2.scratch.0, at 'tmp.0'");
  EXPECT_EQ(refusal_of_steps("@x r0.in.0 -> r0.out.0"), "schedule text, line 4: expected a level after '@'");
  EXPECT_EQ(refusal_of_steps("r0.in.0 -> r0.out.0 by 1"), "schedule text, line 4: expected a rank after 'by', like r0");
  EXPECT_EQ(refusal_of_steps("r0.in.0 -> r0.out.0 tree oak"),
            "schedule text, line 4: a tree is 'canonical' or 'chain'");
  EXPECT_EQ(refusal_of_steps("r0.in.0 -> r0.out.0 !"), "schedule text, line 4: what is '!' at the end?");
  EXPECT_EQ(refusal_of_steps("{\nr0.in.0 -> r0.out.0\n"),
            "schedule text, line 5: a moment is not closed: '}' is missing");
  EXPECT_EQ(refusal_of_steps("{\n{\n}\n}\n"), "schedule text, line 5: a moment can't hold another");
  EXPECT_EQ(refusal_of_steps("{ r0.in.0 -> r0.out.0 }"), "schedule text, line 4: '{' stands alone on its line");
  EXPECT_EQ(refusal_of_steps("@3 r0.in.0 -> r0.out.0"),
            "schedule text, line 4: the step says level 3 but what it touches makes it level 0; leave '@' out to have "
            "it worked out");
  EXPECT_EQ(refusal_of_steps("r0.in.0 -> r7.out.0"),
            "schedule t: step 0 (r0.in.0 -> r7.out.0): r7.out.0: rank is not in 0..1");
}

TEST(ScheduleParser, HoldsItsLimits) {
  const auto shape = [](const std::string& rest) {
    return refusal("sluice schedule 1\nname a\nshape all_to_all " + rest);
  };
  EXPECT_EQ(shape("ranks 4097 chunks 1 root 0 scratch 0"),
            "schedule text, line 3: at most 4096 ranks and 65536 chunks or scratch chunks");
  EXPECT_EQ(shape("ranks 4 chunks 65537 root 0 scratch 0"),
            "schedule text, line 3: at most 4096 ranks and 65536 chunks or scratch chunks");
  EXPECT_EQ(shape("ranks 99999999999 chunks 1 root 0 scratch 0"),
            "schedule text, line 3: expected 'shape COLLECTIVE ranks N chunks N root N scratch N'");
  EXPECT_EQ(shape("ranks 4096 chunks 8 root 0 scratch 0"),
            "schedule text, line 3: 268435456 places are more than the 4194304 that text may have");
  EXPECT_EQ(refusal(std::string(kScheduleTextMax + 1, '\n')),
            "schedule text of 67108865 bytes is longer than 67108864");
  EXPECT_EQ(refusal("sluice schedule 1\nname " + std::string(101, 'a') +
                    "\nshape all_reduce ranks 2 chunks 1 root 0 scratch 0\n"),
            "schedule " + std::string(101, 'a') + ": a name holds 1 to 100 letters, digits, '_', '-' or '.'");
}

TEST(ScheduleParser, ShowsNoControlBytesOfWhatItRefuses) {
  EXPECT_EQ(refusal_of_steps("r0.in.0 -> \x1b[31m\xff"),
            "schedule text, line 4: expected 'PLACE + ... -> PLACE, ...' with places like r0.in.0, r1.out.2, "
            "r2.scratch.0, at '?[31m?'");
}

// Random damage to good text: refused or parsed, and what is parsed prints to itself.
TEST(ScheduleParser, SurvivesDamage) {
  const std::string good = std::string(kHead) +
                           "{\n@0 r0.in.0 + r1.in.0 -> r1.scratch.0\nr0.in.0 -> r0.out.0 by r0 tree "
                           "canonical\n}\nr1.scratch.0 -> r1.out.0, r0.out.0\n";
  ASSERT_TRUE(parse_schedule(good).ok()) << parse_schedule(good).error().text;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    Rng rng(seed);
    std::string text = good;
    for (std::uint64_t edits = 1 + rng.below(4); edits > 0; --edits) {
      const std::size_t at = rng.below(text.size());
      if (rng.chance(0.3))
        text.erase(at, 1 + rng.below(6));
      else if (rng.chance(0.5))
        text[at] = static_cast<char>(rng.below(256));
      else
        text.insert(at, text.substr(rng.below(text.size()), rng.below(12)));
    }
    const auto parsed = parse_schedule(text);
    if (!parsed.ok()) {
      EXPECT_EQ(parsed.error().code, Code::invalid_argument) << "seed " << seed;
    } else {
      EXPECT_TRUE(*parse_schedule(print(*parsed)) == *parsed) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace sluice
