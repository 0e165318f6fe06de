// Runs a program of this build through the shell, as a user does.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace sluice::test {

struct ProgramResult {
  int code = -1;     // 128 + signal for one that was killed
  std::string text;  // standard output, and errors if the command line joins them
};

inline ProgramResult run_shell(const std::string& line) {
  ProgramResult result;
  std::FILE* output = ::popen(line.c_str(), "r");
  if (output == nullptr) return result;
  std::array<char, 4096> part;
  for (std::size_t got = 1; got > 0;) {
    got = std::fread(part.data(), 1, part.size(), output);
    result.text.append(part.data(), got);
  }
  const int status = ::pclose(output);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

// `command` is found in the folder of the programs; `before` goes in front of it: VARIABLE=value settings.
inline ProgramResult run_program(const std::string& command, const std::string& before = "") {
  return run_shell(before + " timeout 60 " SLUICE_PROGRAMS "/" + command);
}

inline nlohmann::json parsed(const std::string& text) {
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  EXPECT_FALSE(value.is_discarded()) << text.substr(0, 400);
  return value;
}

}  // namespace sluice::test
