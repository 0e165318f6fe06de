#include "tools/sluice/answers.h"

#include <sstream>

#include "comm/communicator.h"
#include "comm/executor/runtime_state.h"
#include "comm/tune/tuned_link.h"
#include "tools/launch/local_ranks.h"

namespace sluice::tools {
namespace {

constexpr std::size_t kSizesMax = kTimePointsMax;

Result<LinkModel> ask_link_model(const Config& config) {
  const RuntimeOptions options{.config = config, .join_deadline = config.duration(Setting::join_deadline)};
  if (config.text(Setting::transport) == "loop") {
    SLUICE_TRY_ASSIGN(const auto runtimes, Runtime::loop(2, 1, options));
    return runtimes.front()->state()->link_model({0, 1});
  }
  SLUICE_TRY_ASSIGN(const UniqueId id, make_local_unique_id());
  Result<LinkModel> model = LinkModel{};
  run_threads(2, [&](int rank) {
    const auto runtime = Runtime::join(id, rank, 2, options);
    if (rank == 0) {
      if (runtime.ok())
        model = (*runtime)->state()->link_model({0, 1});
      else
        model = runtime.error();
    }
    return 0;
  });
  return model;
}

Alternative weigh(const Algorithm& algorithm, const TuneRequest& request, const LinkModel& link) {
  Alternative one;
  one.prediction.algorithm = &algorithm;
  if (const Status offer = check_offer(algorithm, request); !offer.ok()) {
    one.refused = offer.text();
    return one;
  }
  const AlgorithmCost cost = algorithm.cost(request.ranks, request.bytes);
  one.rounds_seconds = cost.rounds * link.latency_seconds;
  one.transfer_seconds = cost.sent_bytes / link.bytes_per_second;
  one.combine_seconds = cost.combined_bytes / link.combine_bytes_per_second;
  return one;
}

Answer weigh_all(const TuneRequest& request, const LinkModel& link) {
  Answer found;
  found.collective = request.collective;
  found.bytes = static_cast<std::size_t>(request.bytes);
  for (const Prediction& one : predict(request, link)) {
    found.alternatives.push_back(weigh(*one.algorithm, request, link));
    found.alternatives.back().prediction = one;
  }
  for (const Algorithm& one : all_algorithms())
    if (one.collective == request.collective && !check_offer(one, request).ok())
      found.alternatives.push_back(weigh(one, request, link));
  return found;
}

std::string why_first(const Prediction& first) {
  switch (first.source) {
    case TimeSource::measured: return "the least measured time";
    case TimeSource::scaled:
      return "the least time, scaled from measurements of " + std::to_string(first.measured_ranks) + " ranks";
    case TimeSource::predicted: return "the least predicted time";
  }
  return {};
}

LinkKind kind_by(const Config& config) {
  return config.text(Setting::transport) == "tcp" ? LinkKind::tcp : LinkKind::processes;
}

}  // namespace

Result<Question> read_question(const ExplainOptions& options) {
  Question question{{all_collectives().begin(), all_collectives().end()},
                    {64, std::size_t{4} << 10, std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{64} << 20}};
  if (!options.collective.empty()) {
    const auto collective = parse_collective(options.collective);
    if (!collective) return Error{Code::invalid_argument, "'" + options.collective + "' is no collective"};
    question.collectives = {*collective};
  }
  if (!options.bytes.empty()) {
    SLUICE_TRY_ASSIGN(question.sizes, parse_sizes("--bytes", options.bytes));
  }
  return question;
}

Result<std::vector<std::size_t>> parse_sizes(const std::string& option, const std::string& text) {
  std::vector<std::size_t> sizes;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto bytes = parse_bytes(word);
    if (!bytes.ok()) return Error{Code::invalid_argument, option + ": " + bytes.error().text};
    sizes.push_back(*bytes);
  }
  if (sizes.empty() || sizes.size() > kSizesMax)
    return Error{Code::invalid_argument,
                 option + " is '" + text + "', but must be 1 to " + std::to_string(kSizesMax) + " sizes, as 64,4K,1M"};
  return sizes;
}

Result<Grounds> find_grounds(const ExplainOptions& options) {
  Grounds grounds;
  SLUICE_TRY_ASSIGN(grounds.config, Config::load());
  grounds.kind = kind_by(grounds.config);
  const bool loop = grounds.config.text(Setting::transport) == "loop";
  if (!options.link.empty()) {
    const auto kind = parse_link_kind(options.link);
    if (!kind || loop)
      return Error{Code::invalid_argument, "--link is '" + options.link + "', but must be threads, processes or tcp" +
                                               (loop ? ", and needs another SLUICE_TRANSPORT than loop" : "")};
    grounds.kind = *kind;
  }
  Config joining = grounds.config;
  SLUICE_TRY(joining.set(Setting::tuning, "off", Origin::default_value));
  if (!loop)
    SLUICE_TRY(joining.set(Setting::transport, grounds.kind == LinkKind::tcp ? "tcp" : "shm", Origin::default_value));
  SLUICE_TRY_ASSIGN(grounds.link, ask_link_model(joining));
  if (!loop) grounds.tuning = load_tuning(grounds.config);
  if (grounds.tuning.file == nullptr || !grounds.tuning.file->link(grounds.kind)) return grounds;
  const LinkMeasures& measured = *grounds.tuning.file->link(grounds.kind);
  grounds.link = with_measures(measured);
  return grounds;
}

Result<Answer> answer(Collective collective, std::size_t bytes, const ExplainOptions& options, const Grounds& grounds) {
  const TuneRequest request{.collective = collective,
                            .ranks = options.ranks,
                            .order = options.order == "canonical" ? Order::canonical : Order::fast,
                            .uneven = false,
                            .reduces = is_reduction(collective),
                            .bytes = static_cast<double>(bytes)};
  const Config& config = grounds.config;
  Answer found = weigh_all(request, grounds.link);
  SLUICE_TRY_ASSIGN(const std::string forced, forced_algorithm(config.text(Setting::algorithm), collective));
  found.chosen = forced.empty() ? nullptr : find_algorithm(collective, forced);
  if (found.chosen != nullptr) {
    SLUICE_TRY(check_offer(*found.chosen, request));
    found.why = "forced by the setting algorithm (" + std::string(name(config.origin(Setting::algorithm))) + ")";
    return found;
  }
  found.chosen = found.alternatives.front().prediction.algorithm;
  found.why = why_first(found.alternatives.front().prediction);
  if (!forced.empty())
    found.why += "; the setting algorithm names '" + forced + "', which this collective does not have";
  return found;
}

}  // namespace sluice::tools
