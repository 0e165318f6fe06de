#include "comm/bootstrap/notice_sink.h"

#include <algorithm>
#include <utility>

namespace sluice {

void NoticeSink::set(Handler handler) {
  const std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
  ever_set_ = true;
}

void NoticeSink::deliver(const Notice& notice) {
  const std::lock_guard lock(mutex_);
  unheard_.push_back(notice);
  if (ever_set_) return hear_all();
  if (unheard_.size() <= kUnheardMax) return;
  const auto dispensable = std::find_if(unheard_.begin(), unheard_.end(),
                                        [](const Notice& one) { return one.kind != NoticeKind::peer_lost; });
  if (dispensable != unheard_.end()) unheard_.erase(dispensable);
}

void NoticeSink::deliver_unheard() {
  const std::lock_guard lock(mutex_);
  hear_all();
}

void NoticeSink::hear_all() {
  for (const Notice& notice : std::exchange(unheard_, {}))
    if (handler_) handler_(notice);
}

}  // namespace sluice
