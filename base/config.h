// Every setting, where its value came from, and its effect; and what a launcher left in the environment.
// The environment is read here and nowhere else, once, by whoever builds the Config.
//
// Precedence: call argument > communicator or lane > file (SLUICE_CONFIG, lines `name = value`) >
// SLUICE_* variable > default. A call argument or communicator option never enters here; it is given
// in the call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace sluice {

enum class Setting : std::uint8_t {
  log,          // off error warn info debug
  transport,    // auto shm tcp loop
  algorithm,    // empty: the tuner decides; NAME or COLLECTIVE=NAME,COLLECTIVE=NAME
  order,        // fast canonical: default of calls that do not say
  slice_bytes,  // bytes of a slice, 0: the tuner decides
  slices_in_flight,
  slot_bytes,     // bytes of one slot of a flow
  slots,          // slots of a flow
  arena_bytes,    // address space of a rank's shared arena (touched pages only are real memory)
  deadline,       // no progress for so long: timeout
  join_deadline,  // bootstrap
  interface,      // empty: by reachability; a name, or a subnet as 10.0.0.0/8
  port_range,     // empty: any; FIRST-LAST
  spin,           // how long a waiter spins before it sleeps
  loop_seed,      // seed of the loop transport
  stream_bytes,   // footprint from which results are stored past the caches, 0: that of the last-level cache
  lanes,          // policy of lanes by name: NAME:PRIORITY:WEIGHT:min=..:max=..:flight=..:copy=..:cores=..,...
  lane_delay,     // how long what left on a lane may hold up more urgent ones
  trace,          // folder that the flight recorder is written to when a communicator breaks; auto, off
  metrics,        // folder of the lanes' counters, in Prometheus' text form; empty: none
  tuning,         // auto: what `sluice tune` wrote for this machine; off; or a file
};
inline constexpr std::size_t kSettings = 21;

enum class Origin : std::uint8_t { default_value, environment, file };
std::string_view name(Origin origin);

struct SettingRow {
  Setting setting;
  std::string_view name;      // "slice_bytes"
  std::string_view variable;  // "SLUICE_SLICE_BYTES"
  std::string_view fallback;  // the default, as text
  std::string_view effect;    // one sentence for people
};
const std::array<SettingRow, kSettings>& setting_rows();

class Config {
 public:
  // All defaults.
  Config();
  // Environment and file. invalid_argument names variable or line, value and what is allowed; an unknown
  // SLUICE_* variable is an error too, since it is nearly always a spelling mistake.
  static Result<Config> load();

  Status set(Setting setting, std::string value, Origin origin);

  const std::string& text(Setting setting) const;
  Origin origin(Setting setting) const;
  // Checked when set, so these can't fail. Bytes take K, M, G (binary); durations take ns us ms s min.
  std::size_t bytes(Setting setting) const;
  std::int64_t number(Setting setting) const;
  Nanoseconds duration(Setting setting) const;

 private:
  struct Value {
    std::string text;
    Origin origin = Origin::default_value;
    std::int64_t number = 0;
  };
  std::array<Value, kSettings> values_;
};

// "64K", "1.5M", "3G", "4096": binary suffixes.
Result<std::size_t> parse_bytes(std::string_view text);
std::string format_bytes(std::size_t bytes);
Result<Nanoseconds> parse_duration(std::string_view text);

// What the launcher said. Fields are -1 or empty where it said nothing.
struct LaunchEnvironment {
  std::string source;  // "torchrun", "openmpi", "mpich", "slurm", "sluice", or empty: one process
  int rank = -1;
  int ranks = -1;
  int local_rank = -1;
  int local_ranks = -1;
  std::string master_address;  // torchrun
  int master_port = -1;
  std::string unique_id;        // SLUICE_UNIQUE_ID, hexadecimal: set by `sluice run`
  std::string rendezvous_file;  // SLUICE_RENDEZVOUS_FILE
  std::string job;              // a name that only this job has, from the MPI launcher or Slurm
  std::string secret;           // SLUICE_SECRET: shared by all ranks of a torchrun job
};
Result<LaunchEnvironment> read_launch_environment();

// Other variables that programs need (HOME, nccl-tests' NCCL_TESTS_*): empty when unset.
std::string environment_variable(const char* variable);

}  // namespace sluice
