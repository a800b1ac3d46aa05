#include "daemon/yaml_tree.h"

#include <yaml.h>

#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <utility>

#include "daemon/diagnostics.h"

namespace weir {

namespace {

using NodePtr = std::shared_ptr<const YamlNode>;

constexpr std::size_t kFewEntries = 4;  // as most collections have

// Why the text is refused, thrown out of the builder.
struct Refused {
  YamlError error;
};

int line_of(const yaml_mark_t& mark) { return static_cast<int>(mark.line) + 1; }

std::string text_of(const yaml_char_t* text) {
  return text ? reinterpret_cast<const char*>(text) : "";
}

// libyaml's parser, one event at a time.
class Events {
 public:
  explicit Events(std::string_view text) {
    if (!yaml_parser_initialize(&parser_)) throw std::bad_alloc();
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  ~Events() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  // Valid until the next call.
  const yaml_event_t& next() {
    yaml_event_delete(&event_);
    if (!yaml_parser_parse(&parser_, &event_)) {
      event_ = {};
      const int line = line_of(parser_.problem ? parser_.problem_mark : parser_.mark);
      throw Refused{{line, "not YAML: " + printable(parser_.problem ? parser_.problem : "?")}};
    }
    return event_;
  }

 private:
  yaml_parser_t parser_{};
  yaml_event_t event_{};
};

class TreeBuilder {
 public:
  NodePtr root() const { return root_; }

  void take(const yaml_event_t& event) {
    const int line = line_of(event.start_mark);
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        if (documents_++ > 0) refuse(line, "only one YAML document is allowed");
        break;
      case YAML_ALIAS_EVENT:
        take_alias(line, text_of(event.data.alias.anchor));
        break;
      case YAML_SCALAR_EVENT:
        take_scalar(line, event.data.scalar);
        break;
      case YAML_SEQUENCE_START_EVENT:
        check_tag(line, event.data.sequence_start.tag);
        open(YamlNode::Kind::list, line, text_of(event.data.sequence_start.anchor));
        break;
      case YAML_MAPPING_START_EVENT:
        check_tag(line, event.data.mapping_start.tag);
        open(YamlNode::Kind::map, line, text_of(event.data.mapping_start.anchor));
        break;
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        close();
        break;
      default:
        break;
    }
  }

 private:
  struct Open {
    std::shared_ptr<YamlNode> node;
    std::string anchor;

    bool is_map() const { return node->kind == YamlNode::Kind::map; }
    // The last entry has a name, and its value comes next.
    bool named() const { return !node->entries.empty() && !node->entries.back().value; }
    bool wants_name() const { return is_map() && !named(); }
  };

  [[noreturn]] static void refuse(int line, std::string what) {
    throw Refused{{line, std::move(what)}};
  }

  // `!` alone says that the value is text.
  static void check_tag(int line, const yaml_char_t* tag) {
    const std::string text = text_of(tag);
    if (text.empty() || text == "!") return;
    refuse(line, "YAML tags are not supported: " + quote(text));
  }

  void take_alias(int line, const std::string& anchor) {
    const auto found = anchors_.find(anchor);
    if (found != anchors_.end()) return add(found->second, line, "");
    const bool within = std::ranges::find(open_, anchor, &Open::anchor) != open_.end();
    refuse(line, within ? "an alias within what it stands for"
                        : "not YAML: the referenced anchor is not defined");
  }

  void take_scalar(int line, const decltype(yaml_event_t::data.scalar)& scalar) {
    check_tag(line, scalar.tag);
    const std::string_view text(reinterpret_cast<const char*>(scalar.value), scalar.length);
    const bool quoted = scalar.style != YAML_PLAIN_SCALAR_STYLE || scalar.tag;
    const bool null = !quoted && is_null(text);
    // Half of all texts are names, which need no node that no alias asks for.
    if (!null && !scalar.anchor && !open_.empty() && open_.back().wants_name()) {
      open_.back().node->entries.push_back({std::string(text), line, nullptr});
      return;
    }
    auto node = std::make_shared<YamlNode>();
    if (null) {
      // Where nothing stands, the mark may be that of what comes next, lines away.
      if (!open_.empty() && open_.back().named()) line = open_.back().node->entries.back().line;
    } else {
      node->kind = YamlNode::Kind::scalar;
      node->text = text;
      node->quoted = quoted;
    }
    node->line = line;
    add(std::move(node), line, text_of(scalar.anchor));
  }

  static bool is_null(std::string_view text) {
    return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
  }

  void open(YamlNode::Kind kind, int line, std::string anchor) {
    if (open_.size() + 1 >= kDeepestYaml) refuse_depth(line);
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->line = line;
    node->entries.reserve(kFewEntries);
    anchors_.erase(anchor);  // if it is named anew, what it was is not meant within
    open_.push_back({std::move(node), std::move(anchor)});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    int line = done.node->line;
    add(std::move(done.node), line, done.anchor);
  }

  // A finished node goes into the collection that is open, as key or as value.
  void add(NodePtr node, int line, const std::string& anchor) {
    if (!anchor.empty()) anchors_[anchor] = node;
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& into = open_.back();
    std::vector<YamlEntry>& entries = into.node->entries;
    if (into.wants_name()) {
      if (node->kind != YamlNode::Kind::scalar) refuse(line, "a field's name must be plain text");
      entries.push_back({node->text, line, nullptr});
      return;
    }
    into.node->depth = std::max(into.node->depth, node->depth + 1);
    into.node->values += node->values;
    if (open_.size() + node->depth > kDeepestYaml) refuse_depth(line);
    if (into.node->values > kMostYamlValues) refuse(line, "too many values");
    if (!into.is_map()) entries.push_back({"", line, nullptr});
    entries.back().value = std::move(node);
  }

  [[noreturn]] static void refuse_depth(int line) {
    refuse(line, "more than " + std::to_string(kDeepestYaml) + " levels deep");
  }

  NodePtr root_ = std::make_shared<YamlNode>();
  std::vector<Open> open_;  // from the root down
  std::map<std::string, NodePtr> anchors_;
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

// Checked here, since parsers differ in what they let pass.
std::optional<YamlError> check_bytes(std::string_view text) {
  if (text.size() > kLargestYaml) return YamlError{1, "larger than 1 MiB"};
  int line = 1;
  while (!text.empty()) {
    auto first = static_cast<unsigned char>(text[0]);
    if (first >= 0x20 && first < 0x7f) {  // nearly all of it
      text.remove_prefix(1);
      continue;
    }
    std::size_t length = utf8_length(text);
    if (length == 0) return YamlError{line, "not UTF-8"};
    bool control = first < 0x80 && first != '\n' && first != '\t' && first != '\r';
    if (control) return YamlError{line, "a control character"};
    if (first == '\n') ++line;
    text.remove_prefix(length);
  }
  return std::nullopt;
}

}  // namespace

std::variant<NodePtr, YamlError> parse_yaml(std::string_view text) {
  if (auto error = check_bytes(text)) return *error;
  try {
    Events events(text);
    TreeBuilder builder;
    for (;;) {
      const yaml_event_t& event = events.next();
      if (event.type == YAML_STREAM_END_EVENT) return builder.root();
      builder.take(event);
    }
  } catch (const Refused& refused) {
    return refused.error;
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
