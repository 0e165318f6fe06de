// What the header and -M say of this process.
#pragma once

#include <cstddef>
#include <string>

namespace sluice::tools {

std::string host_name();
std::string processor_name();       // "unknown CPU" where the system does not say
std::size_t resident_bytes();       // of this process now; 0 where the system does not say
std::size_t most_resident_bytes();  // so far

double seconds_now();  // since an arbitrary zero

}  // namespace sluice::tools
