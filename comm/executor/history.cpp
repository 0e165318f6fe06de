#include "comm/executor/history.h"

namespace sluice::detail {

// Words are stored with release and read with acquire: whoever sees one sees that the version is odd, or newer.
void History::note(const Fingerprint& print) {
  Entry& entry = entries_[print.sequence % kEntries];
  const std::uint64_t version = entry.version.load(std::memory_order_relaxed);
  entry.version.store(version + 1, std::memory_order_relaxed);
  const FingerprintWords all = words(print);
  for (std::size_t i = 0; i < all.size(); ++i) entry.words[i].store(all[i], std::memory_order_release);
  entry.version.store(version + 2, std::memory_order_release);
  last_.store(print.sequence, std::memory_order_release);
}

std::optional<Fingerprint> History::read(const Entry& entry) {
  const std::uint64_t version = entry.version.load(std::memory_order_acquire);
  if (version == 0 || version % 2 != 0) return std::nullopt;
  FingerprintWords all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = entry.words[i].load(std::memory_order_acquire);
  if (entry.version.load(std::memory_order_relaxed) != version) return std::nullopt;
  return from_words(all);
}

std::optional<Fingerprint> History::find(std::uint64_t sequence) const {
  const auto print = read(entries_[sequence % kEntries]);
  return print && print->sequence == sequence ? print : std::nullopt;
}

std::vector<Fingerprint> History::all() const {
  std::vector<Fingerprint> prints;
  for (const Entry& entry : entries_)
    if (const auto print = read(entry)) prints.push_back(*print);
  return prints;
}

}  // namespace sluice::detail
