#include "tools/perf/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace sluice::tools {
namespace {

constexpr std::size_t kBlockElements = 1024;

// A run of bytes under one layer, or under none.
struct Segment {
  std::size_t begin = 0;
  std::size_t end = 0;
  const Layer* layer = nullptr;
  std::size_t first = 0;  // index within the layer's source
};

std::vector<Segment> segments_of(const Image& image, std::size_t element) {
  std::vector<std::size_t> borders{0, image.bytes};
  for (const Layer& layer : image.layers) {
    borders.push_back(layer.at);
    borders.push_back(layer.at + layer.count * element);
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  std::vector<Segment> segments;
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    Segment segment{.begin = borders[i], .end = borders[i + 1]};
    for (const Layer& layer : image.layers)
      if (layer.at <= segment.begin && segment.end <= layer.at + layer.count * element) segment.layer = &layer;
    if (segment.layer != nullptr)
      segment.first = segment.layer->source_at + (segment.begin - segment.layer->at) / element;
    segments.push_back(segment);
  }
  return segments;
}

void draw(const ValueRule& rule, const Layer& layer, std::size_t first, std::size_t count, std::byte* out) {
  if (layer.source)
    draw_input(rule, *layer.source, first, count, out);
  else
    draw_reduced(rule, first, count, out);
}

void note_first(Differences& found, const std::string& text) {
  if (found.wrong == 0) found.first = text;
  ++found.wrong;
}

void compare_untouched(const Segment& segment, const std::byte* memory, Differences& found) {
  for (std::size_t at = segment.begin; at < segment.end; ++at)
    if (memory[at] != kUntouched)
      note_first(found, fmt::format("byte {} of the image, which belongs to nobody, was overwritten with 0x{:02x}", at,
                                    static_cast<unsigned>(memory[at])));
}

// One block of a segment: `expected` against `got`.
void compare_block(const ValueRule& rule, const Layer& layer, std::size_t first, std::size_t count,
                   const std::byte* expected, const std::byte* got, Differences& found) {
  const std::size_t element = element_bytes(rule.type);
  if (std::memcmp(expected, got, count * element) == 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t want = load_bits(expected + i * element, element);
    const std::uint64_t have = load_bits(got + i * element, element);
    if (want == have || (!layer.source && acceptable(rule, first + i, got + i * element))) continue;
    note_first(found, fmt::format("element {} ({}) is 0x{:0{}x}, expected 0x{:0{}x}", first + i,
                                  layer.source ? fmt::format("of rank {}", *layer.source) : "of the reduction", have,
                                  2 * element, want, 2 * element));
  }
}

}  // namespace

void paint(const ValueRule& rule, const Image& image, std::byte* memory) {
  const std::size_t element = element_bytes(rule.type);
  for (const Segment& segment : segments_of(image, element)) {
    const std::size_t bytes = segment.end - segment.begin;
    if (segment.layer == nullptr)
      std::memset(memory + segment.begin, static_cast<int>(kUntouched), bytes);
    else
      draw(rule, *segment.layer, segment.first, bytes / element, memory + segment.begin);
  }
}

Differences compare(const ValueRule& rule, const Image& image, const std::byte* memory) {
  const std::size_t element = element_bytes(rule.type);
  std::array<std::byte, kBlockElements * 8> expected;
  Differences found;
  for (const Segment& segment : segments_of(image, element)) {
    if (segment.layer == nullptr) {
      compare_untouched(segment, memory, found);
      continue;
    }
    const std::size_t total = (segment.end - segment.begin) / element;
    for (std::size_t done = 0; done < total; done += kBlockElements) {
      const std::size_t count = std::min(kBlockElements, total - done);
      draw(rule, *segment.layer, segment.first + done, count, expected.data());
      compare_block(rule, *segment.layer, segment.first + done, count, expected.data(),
                    memory + segment.begin + done * element, found);
    }
  }
  return found;
}

}  // namespace sluice::tools
