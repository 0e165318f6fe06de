// Where notices go: to the handler, or, before there is one, into a list that the first handler gets.
//
//   Threads   set() on any; deliver() and deliver_unheard() on the service thread, which alone calls handlers. set() returns only
//             when no call of the old handler is under way, so a handler must not call it.
#pragma once

#include <deque>
#include <functional>
#include <mutex>

#include "comm/bootstrap/control.h"

namespace sluice {

inline constexpr std::size_t kUnheardMax = 4096;  // then the oldest are dropped, losses never

class NoticeSink {
 public:
  using Handler = std::function<void(const Notice&)>;

  void set(Handler handler);
  void deliver(const Notice& notice);
  void deliver_unheard();  // after the first set()

 private:
  void hear_all();

  std::mutex mutex_;            // held during the handler's call
  Handler handler_;             // GUARDED_BY(mutex_)
  bool ever_set_ = false;       // GUARDED_BY(mutex_)
  std::deque<Notice> unheard_;  // GUARDED_BY(mutex_)
};

}  // namespace sluice
