// All that a program needs: communicators and their collectives, Runtime, Work, Config, and the version. Programs outside
// this tree write `#include <sluice/sluice.h>` and compile with what `pkg-config --cflags --libs sluice` says.
#pragma once

#include "comm/bootstrap/unique_id.h"
#include "comm/communicator.h"
#include "sluice/version.h"
