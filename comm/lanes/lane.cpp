#include "comm/lanes/lane.h"

namespace sluice {

std::string_view name(Priority priority) {
  switch (priority) {
    case Priority::control: return "control";
    case Priority::urgent: return "urgent";
    case Priority::normal: return "normal";
    case Priority::bulk: return "bulk";
  }
  return "?";
}

}  // namespace sluice
