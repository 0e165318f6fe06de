#include "device/cpu/combine.h"
