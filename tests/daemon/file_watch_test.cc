// Which changes of a file are told of.

#include "daemon/file_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "daemon/config.h"
#include "tests/support/fast_clock.h"

namespace weir {
namespace {

class FileWatchTest : public testing::Test {
 protected:
  FileWatchTest() { std::filesystem::create_directories(directory_); }
  ~FileWatchTest() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string file = directory_ / name;
    std::ofstream(file) << text;
    return file;
  }
  // Whether a change is told of within 20 looks.
  bool told_of(const FileLooks& files) {
    const test::FastClock clock;
    http::Loop loop(clock);
    bool told = false;
    FileWatch watch(loop, files, [&] { told = true; });
    for (int look = 0; !told && look < 20; ++look) loop.context().run_one();
    return told;
  }

  const std::filesystem::path directory_ =
      std::filesystem::path(testing::TempDir()) / ("weir_file_watch_" + std::to_string(::getpid()));
};

TEST_F(FileWatchTest, TellsOfWhatChangedSinceTheFileWasRead) {
  const std::string file = write("weir.yaml", "upstreams: {main: {servers: [http://a]}}\n");
  const Loaded loaded = load_config({file, {}});
  ASSERT_EQ(loaded.errors, std::vector<std::string>{});
  EXPECT_FALSE(told_of(loaded.files));
  write("weir.yaml", "upstreams: {main: {servers: [http://other]}}\n");
  EXPECT_TRUE(told_of(loaded.files));
}

TEST_F(FileWatchTest, TellsOfEveryFileThatTheConfigurationIsMadeFrom) {
  const std::string retries = write("retries.json", "{}");
  const std::string file = write(
      "weir.yaml", "upstreams: {main: {servers: [http://a], service_config: retries.json}}\n");
  const Loaded loaded = load_config({file, {}});
  ASSERT_EQ(loaded.errors, std::vector<std::string>{});
  EXPECT_EQ(loaded.files, (FileLooks{{file, look_of(file)}, {retries, look_of(retries)}}));
  write("retries.json", "{\"methodConfig\": []}");
  EXPECT_TRUE(told_of(loaded.files));
}

}  // namespace
}  // namespace weir
