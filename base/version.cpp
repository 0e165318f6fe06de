#include "sluice/version.h"

namespace sluice {

const char* version() { return SLUICE_VERSION_STRING; }

}  // namespace sluice
