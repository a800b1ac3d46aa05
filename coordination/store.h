#pragma once

// The key-value store that replicas agree through, at the level of etcd's own primitives:
// MemoryStore keeps it in this process, EtcdStore asks etcd. Revisions count transactions that
// changed something; a key has the revision it was created at, the one it was last put at, and a
// version that counts its puts (a deleted key starts over).
//
// Owned by the coordination loop and called on it alone. Callbacks run on that loop too, once each:
// later, or before the call returns.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir {

using Revision = std::int64_t;
using LeaseId = std::int64_t;  // chosen by the client; positive. 0: no lease

// [key, end); an empty end means the one key, and an end of one NUL byte every key from `key` on. A
// key is never empty.
struct KeyRange {
  std::string key, end;
};
// Every key that begins with `prefix`.
KeyRange keys_under(std::string_view prefix);

struct KeyValue {
  std::string key, value;
  Revision create_revision = 0, mod_revision = 0;
  std::int64_t version = 0;
  LeaseId lease = 0;
};

// Holds if it holds for every key of the range. An empty range is judged as one key whose numbers
// are all 0 and that has no value (a compare of values fails). Deleted keys are not there.
struct Compare {
  enum class Target { version, create, mod, lease, value };
  enum class Is { equal, not_equal, less, greater };
  KeyRange range;
  Target target;
  Is is;
  std::int64_t number = 0;
  std::string value{};
};

struct Read {
  KeyRange range;
  std::int64_t limit = 0;  // 0: all
  bool count_only = false;
};
struct Put {
  std::string key, value;
  LeaseId lease = 0;
};
struct Delete {
  KeyRange range;
};
using Op = std::variant<Read, Put, Delete>;

// `then` if every compare holds, else `otherwise`; at most 128 of each, and no key put twice, nor
// both put and deleted (but by a range without an end), in one branch. A transaction without an op
// may be answered stale: always have one.
struct Txn {
  std::vector<Compare> compares;
  std::vector<Op> then, otherwise;
};
inline constexpr std::size_t kMaxOps = 128;

struct ReadAnswer {
  std::vector<KeyValue> keys;  // in order; none if count_only
  std::int64_t count = 0;      // of the whole range, whatever the limit
};
struct PutAnswer {};
struct DeleteAnswer {
  std::int64_t deleted = 0;
};
using OpAnswer = std::variant<ReadAnswer, PutAnswer, DeleteAnswer>;

struct TxnAnswer {
  bool succeeded = false;
  Revision revision = 0;  // of the store, when the transaction had been applied
  std::vector<OpAnswer> answers;
};

struct StoreError {
  enum class Kind {
    not_applied,   // and never will be
    unknown,       // may have been applied, or may be later
    lease_gone,    // not applied: the lease of a put, or the one asked for, does not exist
    lease_exists,  // a grant: the id is taken, perhaps by an earlier copy of the same grant
  };
  Kind kind;
  std::string detail;
};
template <class T>
using Answer = std::variant<T, StoreError>;
template <class T>
using Callback = std::function<void(Answer<T>)>;

struct LeaseTerm {
  std::chrono::seconds ttl{0};  // as granted, which may be more than was asked for; 0: it is gone
};

// What one transaction did to the watched range.
struct WatchEvent {
  enum class Kind { put, deleted };
  Kind kind;
  KeyValue key;  // deleted: only key and mod_revision, that of the deletion
};
struct WatchHandler {
  // All events of one revision come together, revisions in order.
  std::function<void(Revision, std::span<const WatchEvent>)> events;
  // The watch is over: what it was to begin with is compacted away, or the store was lost. Read the
  // range and watch anew. A range that holds no key at all cannot be watched: it is lost at once.
  std::function<void()> lost;
};
// Destroying it ends the watch: no handler is called from then on.
class Watch {
 public:
  virtual ~Watch() = default;
};

class Store {
 public:
  virtual ~Store() = default;

  virtual void txn(Txn txn, Callback<TxnAnswer> callback) = 0;
  virtual void grant(LeaseId lease, std::chrono::seconds ttl, Callback<LeaseTerm> callback) = 0;
  // A lease that is gone is answered with a term of 0, not as an error.
  virtual void keep_alive(LeaseId lease, Callback<LeaseTerm> callback) = 0;
  virtual void revoke(LeaseId lease, Callback<LeaseTerm> callback) = 0;
  // From revision `from` on; 0: from now on. The handlers may be called before this returns.
  virtual std::unique_ptr<Watch> watch(KeyRange range, Revision from, WatchHandler handler) = 0;
};

}  // namespace weir
