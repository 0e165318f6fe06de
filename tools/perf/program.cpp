// One source for the ten benchmark programs: the build names the test.
#include "tools/perf/main.h"

int main(int argc, char** argv) {
  return sluice::tools::perf_main(sluice::tools::perf_test(SLUICE_PERF_TEST), argc, argv);
}
