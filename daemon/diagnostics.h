#pragma once

// The errors of one configuration, and where each of its fields came from, so that a check made
// after everything is read can still name a field's own line. Used by one thread, for one load.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

// A line of a file, or (line 0) a flag or environment variable, which needs no field path.
struct Origin {
  std::string source;
  int line = 0;
};

class Diagnostics {
 public:
  // `root` is where a field that nobody has set is blamed on.
  explicit Diagnostics(Origin root) { origins_[""] = std::move(root); }

  // A field was set here; the last one to say so wins.
  void locate(const std::string& path, Origin origin);
  bool given(const std::string& path) const { return origins_.contains(path); }

  // An error of this field, at the place that set it or else the nearest section around it.
  void fail(const std::string& path, const std::string& what);
  // An error at a place of its own.
  void fail_at(const Origin& origin, const std::string& path, const std::string& what);

  // No error so far in this field or below it: its value is what the user meant.
  bool good(const std::string& path) const;
  // fail() unless the condition holds or the field has an error already.
  void require(bool condition, const std::string& path, const std::string& what);

  // In the order of the file's lines; what has none comes last. Each once.
  std::vector<std::string> errors() const;

 private:
  std::map<std::string, Origin> origins_;   // by path
  std::set<std::string> failed_;            // paths
  std::multimap<int, std::string> errors_;  // by line; those of one line as they came
};

// Text from the user made fit for one line of output: no control bytes, not too long.
std::string printable(std::string_view text);

// printable(), in quotes.
std::string quote(std::string_view text);

}  // namespace weir
