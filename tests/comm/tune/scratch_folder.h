// A folder of this test's own, which goes away with it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "comm/tune/machine_file.h"

namespace sluice::test {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string path = std::filesystem::temp_directory_path() / "sluice_tune_test_XXXXXX";
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    path_ = path;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_; }
  // Writes it, for this user alone.
  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = path_ + "/" + name;
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    return path;
  }

 private:
  std::string path_;
};

// On every kind of link and for 2 ranks `favourite` takes 1 us at any size, every other algorithm of its collective 1 ms.
inline MachineFile made_up(Collective collective, std::string_view favourite) {
  MachineFile file;
  file.machine = 0x0123456789abcdefu;
  file.description = "made up";
  for (auto& link : file.links) {
    link.emplace();
    link->latency_seconds = 1e-6;
    link->bytes_per_second = 5e9;
    link->combine_bytes_per_second = 8e9;
    for (const Algorithm& one : all_algorithms())
      if (one.collective == collective) {
        const double seconds = one.name == favourite ? 1e-6 : 1e-3;
        link->curves.push_back({&one, 2, {{8, seconds}, {1 << 24, seconds}}});
      }
  }
  return file;
}

}  // namespace sluice::test
