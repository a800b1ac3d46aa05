#pragma once

// The errors of one configuration, and what it was read from, so that a check made after everything
// is read can still name a field's own line. Used by one thread, for one load.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

struct YamlNode;

// A line of a file, or (line 0) a flag or environment variable, which needs no field path.
struct Origin {
  std::string source;
  int line = 0;
};

class Diagnostics {
 public:
  // `root` is where a field that nobody has set is blamed on.
  explicit Diagnostics(Origin root) : root_(std::move(root)) {}

  // The fields of this tree are set by it, whatever set them before.
  void add_source(std::string name, std::shared_ptr<const YamlNode> tree);
  bool given(const std::string& path) const { return origin_of(path).has_value(); }

  // An error of this field, at the place that set it or else the nearest section around it.
  void fail(const std::string& path, const std::string& what);
  // An error at a place of its own.
  void fail_at(const Origin& origin, const std::string& path, const std::string& what);

  // No error so far in this field or below it: its value is what the user meant.
  bool good(const std::string& path) const;
  // fail() unless the field has an error already.
  void refuse(const std::string& path, const std::string& what);
  // The same unless the condition holds.
  void require(bool condition, const std::string& path, const std::string& what);

  // In the order of the file's lines; what has none comes last. Each once.
  std::vector<std::string> errors() const;

 private:
  struct Read {
    std::string name;
    std::shared_ptr<const YamlNode> tree;
  };
  std::optional<Origin> origin_of(std::string_view path) const;

  const Origin root_;
  std::vector<Read> sources_;               // in the order they were read
  std::set<std::string> failed_;            // paths
  std::multimap<int, std::string> errors_;  // by line; those of one line as they came
};

// Text from the user made fit for one line of output: no control bytes, not too long.
std::string printable(std::string_view text);

// printable(), in quotes.
std::string quote(std::string_view text);

}  // namespace weir
