// The subcommands of `sluice`: what each is given, and what it does. Every command prints for people, or with `json` one JSON
// document for programs, and returns the exit code: 0, kFailed (the answer is no), or kUsage (the question is wrong).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace sluice::tools {

inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

// Starts local ranks without MPI; the program joins by Runtime::from_environment().
struct RunOptions {
  int ranks = 1;
  bool json = false;
  std::vector<std::string> command;  // program and its arguments
};
int run_command(const RunOptions& options);

// Shows this machine, or one recorded by `--text`.
struct TopoOptions {
  bool json = false;
  bool text = false;
  std::string svg_file;
  std::string from_file;
};
int topo_command(const TopoOptions& options);

// Proves schedules and what is lowered from them.
struct VerifyOptions {
  bool json = false;
  bool all = false;
  bool together = false;  // the files say what several communicators do at once
  std::vector<std::string> files;
  std::string ranks = "1..16";
  std::string collective;  // empty: all
  std::string algorithm;   // empty: all
  int jobs = 0;            // 0: one per core
  bool schedules_only = false;
};
int verify_command(const VerifyOptions& options);

// Says which algorithm is chosen, why, and what every setting is.
struct ExplainOptions {
  bool json = false;
  std::string collective;  // empty: all
  std::string bytes;       // one or several; empty: a few sizes
  int ranks = 4;
  std::string order = "fast";
  std::string link;       // threads, processes, tcp; empty: as the setting transport says
  bool check = false;     // time every alternative
  bool quick = false;     // with check: fewer samples
  double fail_above = 0;  // with check: kFailed when a choice takes so many times the fastest's time; 0: never
};
int explain_command(const ExplainOptions& options);

// Measures this machine and writes the times, for the tuner.
struct TuneOptions {
  bool json = false;
  bool quick = false;
  std::string ranks;  // "2,4"; empty: powers of two up to the cores, 4 at least
  std::string bytes;  // "64,4K"; empty: 8 B to 16 MiB
  std::string links;  // "threads,tcp"; empty: all
  std::string file;   // empty: where a runtime looks for it
};
int tune_command(const TuneOptions& options);

// Reads what the ranks' flight recorders left.
struct TraceOptions {
  bool json = false;
  bool diagnose = false;    // kFailed when somebody is to blame
  std::string chrome_file;  // for chrome://tracing and Perfetto
  std::string svg_file;
  std::vector<std::string> paths;  // files, or folders of one job
};
int trace_command(const TraceOptions& options);

// "sluice COMMAND: code: text" on standard error.
void print_error(const std::string& command, const Error& error);

}  // namespace sluice::tools
