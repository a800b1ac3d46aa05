#include "daemon/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "daemon/diagnostics.h"

namespace weir {

namespace {

using NodePtr = std::shared_ptr<const YamlNode>;

// Thrown out of yaml-cpp's parser, so that it stops before it recurses any deeper.
struct Refused {
  YamlError error;
};

class TreeBuilder final : public YAML::EventHandler {
 public:
  NodePtr root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) refuse(line_of(mark), "only one YAML document is allowed");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // The mark is that of whatever comes next, which may be lines away.
    int line = open_.empty() || !open_.back().key ? line_of(mark) : open_.back().key_line;
    YamlNode node;
    node.line = line;
    add(std::make_shared<YamlNode>(std::move(node)), line, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto found = anchors_.find(anchor);
    if (found == anchors_.end()) refuse(line_of(mark), "an alias within what it stands for");
    add(found->second, line_of(mark), 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    auto node = std::make_shared<YamlNode>();
    node->kind = YamlNode::Kind::scalar;
    node->line = line_of(mark);
    node->text = value;
    node->quoted = tag == "!";
    add(std::move(node), line_of(mark), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    std::shared_ptr<YamlNode> node;
    YAML::anchor_t anchor;
    std::optional<std::string> key;  // of a map's entry whose value comes next
    int key_line = 0;
  };

  [[noreturn]] static void refuse(int line, std::string what) {
    throw Refused{{line, std::move(what)}};
  }

  static int line_of(const YAML::Mark& mark) { return std::max(mark.line, 0) + 1; }

  static void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    refuse(line_of(mark), "YAML tags are not supported: " + quote(tag));
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    check_tag(mark, tag);
    if (open_.size() + 1 >= kDeepestYaml) refuse_depth(line_of(mark));
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->line = line_of(mark);
    open_.push_back({std::move(node), anchor, std::nullopt, 0});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    int line = done.node->line;
    add(std::move(done.node), line, done.anchor);
  }

  // A finished node goes into the collection that is open, as key or as value.
  void add(NodePtr node, int line, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = node;
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& into = open_.back();
    if (into.node->kind == YamlNode::Kind::map && !into.key) {
      if (node->kind != YamlNode::Kind::scalar) refuse(line, "a field's name must be plain text");
      into.key = node->text;
      into.key_line = line;
      return;
    }
    into.node->depth = std::max(into.node->depth, node->depth + 1);
    into.node->values += node->values;
    if (open_.size() + node->depth > kDeepestYaml) refuse_depth(line);
    if (into.node->values > kMostYamlValues) refuse(line, "too many values");
    into.node->entries.push_back(
        {into.key.value_or(""), into.key ? into.key_line : line, std::move(node)});
    into.key.reset();
  }

  [[noreturn]] static void refuse_depth(int line) {
    refuse(line, "more than " + std::to_string(kDeepestYaml) + " levels deep");
  }

  NodePtr root_ = std::make_shared<YamlNode>();
  std::vector<Open> open_;  // from the root down
  std::map<YAML::anchor_t, NodePtr> anchors_;
  int documents_ = 0;
};

// Length of the UTF-8 character that the text begins with; 0 if it is malformed.
std::size_t utf8_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  bool overlong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  bool surrogate = byte(0) == 0xed && byte(1) >= 0xa0;
  bool beyond = byte(0) == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

// yaml-cpp would end the text at a 0x04 and guess at other encodings, both without a word.
std::optional<YamlError> check_bytes(std::string_view text) {
  if (text.size() > kLargestYaml) return YamlError{1, "larger than 1 MiB"};
  int line = 1;
  while (!text.empty()) {
    auto first = static_cast<unsigned char>(text[0]);
    std::size_t length = utf8_length(text);
    if (length == 0) return YamlError{line, "not UTF-8"};
    bool control = first < 0x20 && first != '\n' && first != '\t' && first != '\r';
    if (control || first == 0x7f) return YamlError{line, "a control character"};
    if (first == '\n') ++line;
    text.remove_prefix(length);
  }
  return std::nullopt;
}

}  // namespace

std::variant<NodePtr, YamlError> parse_yaml(std::string_view text) {
  if (auto error = check_bytes(text)) return *error;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder;
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.root();
  } catch (const Refused& refused) {
    return refused.error;
  } catch (const YAML::Exception& error) {
    return YamlError{std::max(error.mark.line, 0) + 1, "not YAML: " + printable(error.msg)};
  }
}

NodePtr yaml_scalar(std::string_view text) {
  auto node = std::make_shared<YamlNode>();
  node->kind = YamlNode::Kind::scalar;
  node->text = text;
  return node;
}

NodePtr yaml_list(const std::vector<std::string>& texts) {
  auto node = std::make_shared<YamlNode>();
  node->kind = YamlNode::Kind::list;
  for (const std::string& text : texts) node->entries.push_back({"", 0, yaml_scalar(text)});
  return node;
}

NodePtr yaml_within(std::string_view key, NodePtr value) {
  auto node = std::make_shared<YamlNode>();
  node->kind = YamlNode::Kind::map;
  node->entries.push_back({std::string(key), 0, std::move(value)});
  return node;
}

std::string shown(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::list:
      return "a list";
    case YamlNode::Kind::map:
      return "a map";
    case YamlNode::Kind::scalar:
      return quote(node.text);
  }
  return "";
}

}  // namespace weir
