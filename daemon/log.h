#pragma once

// The process's log, on standard error: a line of text or of JSON per event. Whatever bytes a
// client sent, an event stays on one line and its fields stay apart. Any thread.

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <variant>

#include "daemon/config.h"

namespace spdlog {
class logger;
}

namespace weir {

class Log {
 public:
  struct Field {
    std::string_view name;
    std::variant<std::string_view, std::int64_t> value;
  };
  using Fields = std::initializer_list<Field>;

  Log();
  ~Log();
  void configure(const LogOptions& options);

  // One request, whatever the level.
  void access(Fields fields) { put(LogOptions::Level::info, "access", fields); }
  void debug(std::string_view message, Fields fields = {}) {
    write(LogOptions::Level::debug, message, fields);
  }
  void info(std::string_view message, Fields fields = {}) {
    write(LogOptions::Level::info, message, fields);
  }
  void warn(std::string_view message, Fields fields = {}) {
    write(LogOptions::Level::warn, message, fields);
  }
  void error(std::string_view message, Fields fields = {}) {
    write(LogOptions::Level::error, message, fields);
  }

 private:
  void write(LogOptions::Level level, std::string_view message, Fields fields) {
    if (level >= level_) put(level, message, fields);
  }
  void put(LogOptions::Level level, std::string_view message, Fields fields);

  std::shared_ptr<spdlog::logger> logger_;
  std::atomic<LogOptions::Level> level_{LogOptions::Level::info};
  std::atomic<LogOptions::Format> format_{LogOptions::Format::text};
};

}  // namespace weir
