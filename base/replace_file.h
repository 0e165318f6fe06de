// Writes a file that readers see whole or not at all: into a fresh one beside it, which then takes its name.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

// `what` is it in messages: "the tuning file". `mode`: its rights, whatever the umask. A link of that name is replaced, not followed.
// `sync`: it is on the disk when this returns, which may take long. Errors: system; then nothing was changed.
Status replace_file(const std::string& path, std::string_view text, mode_t mode, std::string_view what,
                    bool sync = true);

}  // namespace sluice
