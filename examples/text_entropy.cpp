// Prints the entropy of a text's single bytes and of byte pairs: what a trained model's held-out loss is compared with.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "examples/text/entropy.h"
#include "examples/text/read_text.h"

int main(int argc, char** argv) {
  using namespace sluice::examples;
  CLI::App app("Entropy of a text's bytes, in nats a byte");
  std::string path = kDefaultText;
  bool json = false;
  app.add_option("--data", path, "text, plain or gzip-compressed")->capture_default_str();
  app.add_flag("--json", json, "one JSON object instead of lines for people");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  const auto text = read_text(path);
  if (!text.ok()) {
    fmt::print(stderr, "text_entropy: {}\n", text.error().text);
    return 1;
  }
  const Entropy found = entropy(*text);
  if (json)
    fmt::print("{}\n",
               nlohmann::json{{"bytes", text->size()}, {"unigram", found.unigram}, {"bigram", found.bigram}}.dump());
  else
    fmt::print(
        "{} bytes\nsingle bytes  {:.4f} nats a byte\nbyte pairs    {:.4f} nats a byte (a byte, its predecessor "
        "known)\n",
        text->size(), found.unigram, found.bigram);
  return 0;
}
