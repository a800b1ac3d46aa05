#include "coordination/coordinator.h"

#include <utility>

#include "coordination/ledger.h"

namespace weir {
namespace {

constexpr std::chrono::milliseconds kWatchAgain{200};
constexpr std::chrono::seconds kStraysAgain{1};

}  // namespace

Coordinator::Coordinator(const Clock& clock, Random& random, Store& store,
                         CoordinatorOptions options, std::function<void()> wake)
    : clock_(clock),
      random_(random),
      options_(std::move(options)),
      health_(store, clock, 2 * options_.store_timeout, [this] { store_came_back(); }),
      keys_(options_.prefix, options_.replica),
      wake_(std::move(wake)),
      table_(
          clock, room_, [this](Resource& resource) { asked(resource); }, options_.max_resources,
          options_.sole ? &forward_ : nullptr),
      leases_(health_, random, clock, Leases::Terms{options_.clock_skew, options_.kept_ttl},
              [this](const std::shared_ptr<LeaseSlot>& slot) { lease_lost(slot); }),
      unrecorded_(std::make_shared<LeaseSlot>()) {
  unrecorded_->fence = std::make_shared<Fence>(SteadyTime::max());
}

Coordinator::~Coordinator() = default;

Policy& Coordinator::policy(const std::string& name) {
  std::lock_guard lock(policies_mutex_);
  auto& policy = policies_[name];
  if (!policy) policy = std::make_unique<Policy>(name);
  return *policy;
}

const Policy* Coordinator::find_policy(const std::string& name) const {
  std::lock_guard lock(policies_mutex_);
  const auto found = policies_.find(name);
  return found == policies_.end() ? nullptr : found->second.get();
}

void Coordinator::each_policy(const std::function<void(const Policy&)>& visit) const {
  std::lock_guard lock(policies_mutex_);
  for (const auto& [name, policy] : policies_) visit(*policy);
}

void Coordinator::configure(const std::vector<std::pair<std::string, Limit>>& limits,
                            std::size_t max_resources, std::size_t max_waiting) {
  for (const auto& [name, limit] : limits) policy(name).set_limit(limit);
  table_.set_max(max_resources);
  room_.max = max_waiting;
  for (const Shared& resource : table_.all()) again(resource);
}

// Any thread.
void Coordinator::asked(Resource& resource) {
  Shared shared = resource.weak_from_this().lock();
  if (!shared) return;
  bool first = false;
  {
    std::lock_guard lock(asked_mutex_);
    first = asked_.empty();
    asked_.push_back(std::move(shared));
  }
  if (first) wake_();
}

void Coordinator::again(const Shared& resource) {
  again_.push_back(resource);
  if (!running_ && again_.size() == 1) wake_();
}

void Coordinator::wake_at(Resource& resource, SteadyTime at) {
  Books& books = resource.books;
  if (at >= books.wake_at) return;
  if (books.wake_at != SteadyTime::max()) due_.erase({books.wake_at, books.wake_order});
  books.wake_at = at;
  books.wake_order = next_number_++;
  due_.insert({at, books.wake_order, resource.weak_from_this()});
}

void Coordinator::run() {
  running_ = true;
  const SteadyTime began = clock_.steady_now();
  if (health_.check(began)) store_went_down(began);
  if (health_.down() && began >= probe_at_) probe();
  if (!health_.down() && began >= watch_again_) start_watch();
  leases_.run(now());
  if (!strays_.empty() && !health_.down() && began >= strays_again_) clear_strays();
  while (!due_.empty() && due_.begin()->at <= clock_.steady_now()) {
    const Shared resource = due_.begin()->resource.lock();
    due_.erase(due_.begin());
    if (!resource) continue;
    resource->books.wake_at = SteadyTime::max();
    again_.push_back(resource);
  }
  for (;;) {
    std::vector<Shared> batch;
    {
      std::lock_guard lock(asked_mutex_);
      batch.swap(asked_);
    }
    batch.insert(batch.end(), again_.begin(), again_.end());
    again_.clear();
    if (batch.empty()) break;
    for (const Shared& resource : batch) turn(resource);
  }
  running_ = false;
  if (stopping_ && stopped_ && all_given_back()) std::exchange(stopped_, nullptr)();
}

// Or the store is away, and what is left runs out by itself.
bool Coordinator::all_given_back() const {
  if (health_.down()) return true;
  if (under_way_ > 0) return false;
  const std::vector<Shared> all = table_.all();
  return std::none_of(all.begin(), all.end(), [](const Shared& resource) {
    return resource->books.pending || !resource->books.returns.empty();
  });
}

std::optional<SteadyTime> Coordinator::next_due() const {
  SteadyTime due = health_.down() ? probe_at_ : watch_again_;
  if (const auto lease = leases_.next_due()) due = std::min(due, *lease);
  if (const auto check = health_.next_due()) due = std::min(due, *check);
  if (!due_.empty()) due = std::min(due, due_.begin()->at);
  if (!strays_.empty() && !health_.down()) due = std::min(due, strays_again_);
  if (due == SteadyTime::max()) return std::nullopt;
  return due;
}

void Coordinator::set_replicas(const std::vector<std::string>& names) {
  live_replicas_ = std::max(1, static_cast<int>(names.size()));
  const auto own = std::find(names.begin(), names.end(), options_.replica);
  own_index_.reset();
  if (own != names.end()) own_index_ = static_cast<int>(own - names.begin());
}

// Whatever hangs on it is no longer counted by anybody: nothing of it is spent from here on, and
// what is under way is more than the limit may know of.
void Coordinator::lease_lost(const std::shared_ptr<LeaseSlot>& slot) {
  ++stats_.leases_lost;
  for (const Shared& resource : table_.all()) {
    Books& books = resource->books;
    bool any = false;
    for (auto claim = books.held.begin(); claim != books.held.end();) {
      if (claim->second.lease != slot) {
        ++claim;
        continue;
      }
      resource->allowance()->write_off(claim->second.batch);
      resource->policy().lost += static_cast<std::uint64_t>(claim->second.units());
      claim = books.held.erase(claim);
      any = true;
    }
    if (any) {
      books.stale = true;
      again(resource);
    }
  }
}

void Coordinator::drain() {
  room_.draining = true;
  for (const Shared& resource : table_.all()) {
    // Elsewhere a claim is under way, and who needs no more than that is served.
    if (resource->books.full) {
      resource->allowance()->refuse(Refusal::draining, Allowance::Whom::everybody);
    }
  }
}

void Coordinator::stop(std::function<void()> done) {
  stopping_ = true;
  stopped_ = std::move(done);
  for (const Shared& resource : table_.all()) {
    again_.push_back(resource);
  }
  wake_();
}

void Coordinator::inspect(const Policy& policy, std::string_view resource,
                          std::function<void(std::optional<Claims>)> callback) {
  const Instant now = this->now();
  const Limit limit = policy.limit();
  if (counts_here(limit.mode)) {
    Claims units;
    if (const Shared found = table_.peek(policy, resource)) {
      const std::int64_t used = found->allowance()->summary().state.used;
      if (used > 0) units.emplace(options_.replica, used);
    }
    return callback(std::move(units));
  }
  const std::string claims =
      keys_.claims_of(policy.name(), resource, limit.mode, window_at(now.wall, limit.window));
  health_.txn(read_txn(claims), [callback = std::move(callback)](Answer<TxnAnswer> answer) {
    const auto* told = std::get_if<TxnAnswer>(&answer);
    if (!told) return callback(std::nullopt);
    Claims units;
    for (const KeyValue& entry : std::get<ReadAnswer>(told->answers.front()).keys) {
      const auto owner = percent_decode(Keyspace::owner_of(entry.key));
      units[owner.value_or("?")] += claimed_units(entry.value);
    }
    callback(std::move(units));
  });
}

ResourceView Coordinator::view(Resource& resource) const {
  const Allowance::Summary summary = resource.allowance()->summary();
  ResourceView view;
  view.name = resource.name();
  view.rule = resource.policy().name();
  view.used = summary.state.used;
  view.limit = summary.state.limit;
  view.waiting = summary.waiting;
  view.in_hand = summary.in_hand;
  view.next_free = summary.state.more_at;
  switch (summary.state.mode) {
    case Mode::started:
    case Mode::until_done:
      if (summary.state.limit > 0) view.window = utc_text(summary.state.window.start);
      break;
    case Mode::sliding:
      view.window = "sliding";
      break;
    case Mode::in_flight:
      view.window = "in_flight";
      break;
  }
  return view;
}

// Watches from where the store is now, and has what was full till then looked at again: between the
// two nothing is missed. Otherwise the watch only hints; claims find out by themselves.
void Coordinator::start_watch() {
  watch_again_ = SteadyTime::max();
  const auto later = [this] {
    watch_again_ = clock_.steady_now() + kWatchAgain;
    wake_();
  };
  health_.txn(read_txn(keys_.own_replica()), [this, later](Answer<TxnAnswer> answer) {
    const auto* told = std::get_if<TxnAnswer>(&answer);
    if (!told) return later();
    watch_ = health_.watch(
        keys_under(keys_.all_claims()), told->revision + 1,
        {[this](Revision, std::span<const WatchEvent> events) { on_events(events); }, later});
    for (const Shared& resource : table_.all()) {
      if (!resource->books.full) continue;
      resource->books.stale = true;
      again(resource);
    }
  });
}

// A full resource may have room again when a claim was deleted or shrunk.
void Coordinator::on_events(std::span<const WatchEvent> events) {
  for (const WatchEvent& event : events) {
    const bool freed = event.kind == WatchEvent::Kind::deleted || is_shrunk(event.key.value);
    if (!freed && Keyspace::owner_of(event.key.key) != keys_.owner()) continue;
    const auto parsed = keys_.parse_claim(event.key.key);
    if (!parsed) continue;
    const Policy* const policy = find_policy(parsed->rule);
    const Shared resource = policy ? table_.peek(*policy, parsed->resource) : nullptr;
    if (!resource) {
      // Other claims run out by themselves, and may still count.
      const bool stray = policy && !freed && policy->limit().mode == Mode::in_flight;
      if (stray && leases_.ours(event.key.lease))
        strays_.push_back({event.key.key, event.key.lease});
      if (stray) wake_();
    } else if (!freed) {
      clear_late_copy(resource, event.key);
    } else if (event.key.key.starts_with(resource->books.claims)) {
      Books& books = resource->books;
      books.freed_at = std::max(books.freed_at, event.key.mod_revision);
      if (!books.full || books.stale) continue;
      books.stale = true;
      tell(*resource, now());
      again(resource);
    }
  }
}

// Copies of claims that came when their resource had been forgotten: nobody spends them.
void Coordinator::clear_strays() {
  for (const OwnKey& stray : std::exchange(strays_, {})) {
    health_.txn(delete_txn(stray.key, {&stray, 1}), [this, stray](const Answer<TxnAnswer>& answer) {
      if (std::holds_alternative<TxnAnswer>(answer)) return;
      strays_.push_back(stray);
      strays_again_ = clock_.steady_now() + kStraysAgain;
      wake_();
    });
  }
}

// A key of ours that we do not know is a copy of a transaction that was given up, or that was sent
// twice and whose units have gone back since. Nobody will spend it, so it goes; but for those of
// windows that are over, whose claims are no longer known and may still count for others.
void Coordinator::clear_late_copy(const Shared& resource, const KeyValue& entry) {
  Books& books = resource->books;
  if (!entry.key.starts_with(books.claims) || books.knows(entry.key)) return;
  if (entry.mod_revision <= books.read_at || !leases_.ours(entry.lease)) return;
  books.orphans.push_back({entry.key, entry.lease});
  again(resource);
}

}  // namespace weir
