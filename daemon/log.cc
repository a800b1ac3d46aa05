#include "daemon/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

namespace weir {
namespace {

spdlog::level::level_enum spdlog_level(LogOptions::Level level) {
  switch (level) {
    case LogOptions::Level::trace:
      return spdlog::level::trace;
    case LogOptions::Level::debug:
      return spdlog::level::debug;
    case LogOptions::Level::info:
      return spdlog::level::info;
    case LogOptions::Level::warn:
      return spdlog::level::warn;
    case LogOptions::Level::error:
      return spdlog::level::err;
    case LogOptions::Level::off:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// A JSON string, which is also how a value with odd bytes stands in a line of text.
std::string quoted(std::string_view value) {
  return nlohmann::json(value).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

bool is_plain(std::string_view value) {
  if (value.empty()) return false;
  for (char c : value) {
    if (c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '=') return false;
  }
  return true;
}

// The event without time and level, as text or as the members of a JSON object.
std::string text_of(std::string_view message, Log::Fields fields) {
  std::string line{message};
  for (const auto& [name, value] : fields) {
    line.append(" ").append(name).append("=");
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      line.append(std::to_string(*number));
    } else {
      const auto text = std::get<std::string_view>(value);
      line.append(is_plain(text) ? std::string{text} : quoted(text));
    }
  }
  return line;
}

std::string json_of(std::string_view message, Log::Fields fields) {
  std::string line = "\"message\":" + quoted(message);
  for (const auto& [name, value] : fields) {
    line.append(",").append(quoted(name)).append(":");
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      line.append(std::to_string(*number));
    } else {
      line.append(quoted(std::get<std::string_view>(value)));
    }
  }
  return line;
}

}  // namespace

Log::Log()
    : logger_(std::make_shared<spdlog::logger>("weird",
                                               std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  logger_->set_level(spdlog::level::trace);
  configure({});
}

Log::~Log() = default;

void Log::configure(const LogOptions& options) {
  format_ = options.format;
  level_ = options.level;
  logger_->set_pattern(options.format == LogOptions::Format::json
                           ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                           : "%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                       spdlog::pattern_time_type::utc);
}

void Log::put(LogOptions::Level level, std::string_view message, Fields fields) {
  const bool json = format_ == LogOptions::Format::json;
  const std::string line = json ? json_of(message, fields) : text_of(message, fields);
  logger_->log(spdlog_level(level), spdlog::string_view_t{line.data(), line.size()});
}

}  // namespace weir
