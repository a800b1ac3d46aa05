#include "coordination/line.h"

namespace weir {

void Line::push(Place& place, std::string_view tenant, Queue order) {
  // A fifo line is a fair one with a single tenant.
  const std::string_view name = order == Queue::fair ? tenant : std::string_view{};
  auto found = by_tenant_.find(name);
  if (found == by_tenant_.end()) {
    PerTenant& fresh = round_.emplace_back();
    fresh.tenant = name;
    fresh.self = std::prev(round_.end());
    found = by_tenant_.emplace(fresh.tenant, &fresh).first;
  }
  PerTenant& queue = *found->second;
  place.queue_ = &queue;
  place.previous_ = queue.last;
  place.next_ = nullptr;
  (queue.last ? queue.last->next_ : queue.first) = &place;
  queue.last = &place;
  ++size_;
}

Line::Place* Line::pop() {
  if (round_.empty()) return nullptr;
  PerTenant& queue = round_.front();
  Place* const place = queue.first;
  round_.splice(round_.end(), round_, queue.self);  // the next tenant's turn
  remove(*place);
  return place;
}

Line::Place* Line::first_of(std::string_view tenant) const {
  const auto found = by_tenant_.find(tenant);
  return found == by_tenant_.end() ? nullptr : found->second->first;
}

void Line::pass() {
  if (!round_.empty()) round_.splice(round_.end(), round_, round_.begin());
}

void Line::offer(const std::function<Judged(Place&)>& judge) {
  for (auto queue = round_.begin(); queue != round_.end();) {
    const auto next = std::next(queue);
    Place& place = *queue->first;
    const Judged judged = judge(place);
    if (judged == Judged::stop) return;
    if (judged == Judged::taken) {
      // If it was the last in turn, it comes again at once.
      const bool again = next == round_.end() && queue->first != queue->last;
      round_.splice(round_.end(), round_, queue);
      remove(place);
      if (again) continue;
    }
    queue = next;
  }
}

Line::Place* Line::pop_last() {
  if (round_.empty()) return nullptr;
  Place* const place = round_.back().last;
  remove(*place);
  return place;
}

void Line::remove(Place& place) {
  auto& queue = *static_cast<PerTenant*>(place.queue_);
  (place.previous_ ? place.previous_->next_ : queue.first) = place.next_;
  (place.next_ ? place.next_->previous_ : queue.last) = place.previous_;
  place.next_ = place.previous_ = nullptr;
  place.queue_ = nullptr;
  --size_;
  if (queue.first) return;
  by_tenant_.erase(queue.tenant);
  round_.erase(queue.self);
}

void Line::each(const std::function<void(Place&)>& visit) {
  for (auto queue = round_.begin(); queue != round_.end();) {
    const auto next_queue = std::next(queue);
    for (Place* place = queue->first; place;) {
      Place* const next = place->next_;
      visit(*place);  // may be the queue's last, and end the queue
      place = next;
    }
    queue = next_queue;
  }
}

}  // namespace weir
