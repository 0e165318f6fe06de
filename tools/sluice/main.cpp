// sluice: the command line. Options are declared here; each subcommand has a file of its own.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "sluice/version.h"
#include "tools/sluice/commands.h"

namespace sluice::tools {
namespace {

constexpr std::array<std::string_view, 6> kCommands{"run", "topo", "verify", "explain", "tune", "trace"};

struct AllOptions {
  RunOptions run;
  TopoOptions topo;
  VerifyOptions verify;
  ExplainOptions explain;
  TuneOptions tune;
  TraceOptions trace;
};

CLI::App* add_run(CLI::App& app, RunOptions& options) {
  CLI::App* command = app.add_subcommand("run", "start local ranks without MPI: sluice run -n 4 PROGRAM ARGUMENTS");
  command->add_option("-n", options.ranks, "number of ranks")->required()->check(CLI::Range(1, 1024));
  command->add_flag("--json", options.json, "at the end print how the ranks ended, as JSON");
  command->prefix_command();
  return command;
}

CLI::App* add_topo(CLI::App& app, TopoOptions& options) {
  CLI::App* command = app.add_subcommand("topo", "show this machine: processors, memory, devices, networks");
  command->add_flag("--json", options.json, "print JSON");
  command->add_flag("--text", options.text, "print the text form, which can be recorded and read back");
  command->add_option("--svg", options.svg_file, "draw it into FILE");
  command->add_option("--file", options.from_file, "show a recorded machine instead");
  return command;
}

CLI::App* add_verify(CLI::App& app, VerifyOptions& options) {
  CLI::App* command = app.add_subcommand("verify", "prove schedules, and the programs that they are lowered to");
  command->add_option("file", options.files, "schedules in their text form");
  command->add_flag(
      "--together", options.together,
      "the files say what several communicators do at once: lines `operation NAME COLLECTIVE[:ALGORITHM] RANKS "
      "[PRIORITY]` and `calls RANK NAME[!] ...`, where ! waits");
  command->add_flag("--all", options.all, "every algorithm of every collective");
  command->add_option("--ranks", options.ranks, "with --all: A..B, or one number (1..16)");
  command->add_option("--collective", options.collective, "with --all: this one only");
  command->add_option("--algorithm", options.algorithm, "with --all: this one only");
  command->add_option("--jobs", options.jobs, "with --all: threads (one per core)")->check(CLI::Range(1, 1024));
  command->add_flag("--schedules-only", options.schedules_only, "with --all: leave out the lowered programs");
  command->add_flag("--json", options.json, "print JSON");
  return command;
}

CLI::App* add_explain(CLI::App& app, ExplainOptions& options) {
  CLI::App* command = app.add_subcommand("explain", "which algorithm is chosen and why; every setting and its origin");
  command->add_option("collective", options.collective, "all_reduce, all_gather, ... (all)");
  command->add_option("--bytes,--size", options.bytes, "sizes of the message, as 64K or 64,4K,1M (several)");
  command->add_option("--ranks", options.ranks, "number of ranks (4)")->check(CLI::Range(1, 4096));
  command->add_option("--order", options.order, "fast or canonical (fast)")
      ->check(CLI::IsMember({"fast", "canonical"}));
  command->add_option("--link", options.link, "threads, processes or tcp (as the setting transport says)");
  command->add_flag("--check", options.check,
                    "time every alternative here, and list the choices that are not the fastest");
  command->add_flag("--quick", options.quick, "with --check: fewer samples");
  command
      ->add_option("--fail-above", options.fail_above,
                   "with --check: fail when a choice takes R times the fastest's time")
      ->check(CLI::Range(1.0, 1e6));
  command->add_flag("--json", options.json, "print JSON");
  return command;
}

CLI::App* add_tune(CLI::App& app, TuneOptions& options) {
  CLI::App* command =
      app.add_subcommand("tune", "measure this machine, and keep the times for choosing algorithms: minutes");
  command->add_flag("--quick", options.quick, "fewer sizes and samples: seconds");
  command->add_option("--ranks", options.ranks,
                      "numbers of ranks, as 2,4,8 (powers of two up to the cores, 4 at least)");
  command->add_option("--bytes", options.bytes, "sizes of the message, as 64,4K,1M (8 to 16M)");
  command->add_option("--links", options.links, "of threads,processes,tcp (all)");
  command->add_option("--file", options.file, "write into FILE, for SLUICE_TUNING=FILE (where it is found by itself)");
  command->add_flag("--json", options.json, "print JSON");
  return command;
}

CLI::App* add_trace(CLI::App& app, TraceOptions& options) {
  CLI::App* command = app.add_subcommand("trace", "read what the flight recorders of a job's ranks left");
  command->add_option("path", options.paths, "the job's folder, or files of it")->required();
  command->add_flag("--diagnose", options.diagnose,
                    "who is to blame: the first rank that diverged, or for whom all wait");
  command->add_option("--chrome", options.chrome_file, "write FILE for chrome://tracing or Perfetto");
  command->add_option("--svg", options.svg_file, "draw the lanes over time into FILE");
  command->add_flag("--json", options.json, "print JSON");
  return command;
}

int usage_error(const std::string& what) {
  std::fprintf(stderr, "sluice: %s (sluice --help, sluice COMMAND --help)\n", what.c_str());
  return kUsage;
}

int run(int argc, char** argv) {
  CLI::App app("Sluice, collective communication: runs, shows, proves and explains", "sluice");
  app.set_version_flag("--version", std::string("sluice ") + version());
  AllOptions options;
  CLI::App* run_app = add_run(app, options.run);
  CLI::App* topo_app = add_topo(app, options.topo);
  CLI::App* verify_app = add_verify(app, options.verify);
  CLI::App* explain_app = add_explain(app, options.explain);
  CLI::App* tune_app = add_tune(app, options.tune);
  add_trace(app, options.trace);
  app.require_subcommand(1);
  if (argc < 2) return usage_error("a command is missing: run, topo, verify, explain, tune or trace");
  // CLI11 would only say that a command is missing.
  const std::string first = argv[1];
  const bool asks = first == "--help" || first == "-h" || first == "--version";
  if (!asks && std::find(kCommands.begin(), kCommands.end(), first) == kCommands.end())
    return usage_error("'" + first + "' is not a command: there are run, topo, verify, explain, tune and trace");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what());
  }
  if (run_app->parsed()) {
    options.run.command = run_app->remaining();
    return run_command(options.run);
  }
  if (topo_app->parsed()) return topo_command(options.topo);
  if (verify_app->parsed()) return verify_command(options.verify);
  if (explain_app->parsed()) return explain_command(options.explain);
  if (tune_app->parsed()) return tune_command(options.tune);
  return trace_command(options.trace);
}

}  // namespace

}  // namespace sluice::tools

int main(int argc, char** argv) { return sluice::tools::run(argc, argv); }
