// A changed file is taken over as a whole or not at all, whichever way it was changed.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "tests/support/answers.h"
#include "tests/support/raw_client.h"
#include "tests/support/weird_process.h"
#include "tests/support/windows.h"

namespace weir::test {
namespace {

namespace fs = std::filesystem;

// Two upstreams to tell configurations apart by.
class Reload : public testing::Test {
 protected:
  Config pointing_at(const FakeUpstream& upstream) { return {.servers = {upstream.url()}}; }

  void wait_for_reloads(const WeirdProcess& weird, const std::string& result, int count) {
    weird.wait_for_metric("weir_config_reloads_total", {{"result", result}}, count);
  }

  FakeUpstream old_{serve(answer(200, "old"))};
  FakeUpstream new_{serve(answer(200, "new"))};
};

TEST_F(Reload, SighupReadsTheFileAgain) {
  WeirdProcess weird(pointing_at(old_));
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/").body, "old");
  weird.signal(SIGHUP);
  wait_for_reloads(weird, "ok", 1);
  EXPECT_EQ(client.get("/").body, "old");
  weird.write_config(pointing_at(new_));
  weird.signal(SIGHUP);
  wait_for_reloads(weird, "ok", 2);
  EXPECT_EQ(client.get("/").body, "new") << "connections that are open follow too";
  EXPECT_EQ(get(weird.port(), "/").body, "new");
}

TEST_F(Reload, AFileRenamedOverTheOldOneIsNoticed) {
  WeirdProcess weird(pointing_at(old_));
  EXPECT_EQ(get(weird.port(), "/").body, "old");
  weird.write_config(pointing_at(new_));
  wait_for_reloads(weird, "ok", 1);
  EXPECT_EQ(get(weird.port(), "/").body, "new");
  weird.write_config(pointing_at(old_));
  wait_for_reloads(weird, "ok", 2);
  EXPECT_EQ(get(weird.port(), "/").body, "old");
}

TEST_F(Reload, AFileWrittenInPlaceIsNoticed) {
  WeirdProcess weird(pointing_at(old_));
  EXPECT_EQ(get(weird.port(), "/").body, "old");
  write_file(weird.config_file(), pointing_at(new_).yaml());
  // Half of it may be read, and refused, on the way.
  wait_for_reloads(weird, "ok", 1);
  EXPECT_EQ(get(weird.port(), "/").body, "new");
}

TEST_F(Reload, AServiceConfigInAFileOfItsOwnIsWatchedToo) {
  TemporaryDirectory directory;
  Config config = pointing_at(old_);
  config.upstream = "service_config: retries.json";
  write_file(directory.path() / "weir.yaml", config.yaml());
  write_file(directory.path() / "retries.json", "{}");
  WeirdProcess weird(directory.path() / "weir.yaml", {});
  replace_file(directory.path() / "retries.json", "{\"methodConfig\": 1}");
  wait_for_reloads(weird, "failed", 1);
  EXPECT_TRUE(weird.wait_for_log("methodConfig"));
  replace_file(directory.path() / "retries.json", "{\"methodConfig\": []}");
  wait_for_reloads(weird, "ok", 1);
  EXPECT_EQ(get(weird.port(), "/").body, "old");
}

TEST_F(Reload, IsNotRefusedToWhoWasGivenAnEmptyName) {
  WeirdProcess weird(pointing_at(old_), {.arguments = {"--replica", ""}});
  weird.write_config(pointing_at(new_));
  wait_for_reloads(weird, "ok", 1);
  EXPECT_EQ(get(weird.port(), "/").body, "new");
}

TEST_F(Reload, TheLogsLevelFollows) {
  WeirdProcess weird(pointing_at(old_));
  const auto reload = [&](const std::string& rest) {
    Config config = pointing_at(old_);
    config.rest = rest;
    weird.write_config(config);
  };
  reload("log: {level: info}");
  ASSERT_TRUE(weird.wait_for_log("configuration taken over"));
  reload("log: {level: error}");
  wait_for_reloads(weird, "ok", 2);
  const std::size_t before = weird.log().size();
  reload("log: {level: error}\nlimits: {target_bytes: 100}");
  wait_for_reloads(weird, "ok", 3);
  reload("no_such_field: 1");
  ASSERT_TRUE(weird.wait_for_log("the last good one stays"));
  EXPECT_EQ(weird.log().find("taken over", before), weird.log().find("not taken over", before) + 4)
      << weird.log();
}

TEST_F(Reload, ASymlinkSwappedAsKubernetesDoesItIsNoticed) {
  // A ConfigMap's volume: weir.yaml -> ..data/weir.yaml, ..data -> a directory per version.
  TemporaryDirectory volume;
  const auto publish = [&](const std::string& version, const Config& config) {
    const fs::path directory = volume.path() / version;
    fs::create_directory(directory);
    write_file(directory / "weir.yaml", config.yaml());
    fs::create_directory_symlink(version, volume.path() / "..data_tmp");
    fs::rename(volume.path() / "..data_tmp", volume.path() / "..data");
  };
  publish("..1", pointing_at(old_));
  fs::create_symlink("..data/weir.yaml", volume.path() / "weir.yaml");

  WeirdProcess weird(volume.path() / "weir.yaml", {});
  EXPECT_EQ(get(weird.port(), "/").body, "old");
  publish("..2", pointing_at(new_));
  fs::remove_all(volume.path() / "..1");
  wait_for_reloads(weird, "ok", 1);
  EXPECT_EQ(get(weird.port(), "/").body, "new");
  publish("..3", pointing_at(old_));
  fs::remove_all(volume.path() / "..2");
  wait_for_reloads(weird, "ok", 2);
  EXPECT_EQ(get(weird.port(), "/").body, "old");
}

TEST_F(Reload, AnInvalidFileChangesNothingAndIsCountedAndLogged) {
  WeirdProcess weird(pointing_at(old_));
  Config invalid = pointing_at(new_);
  invalid.rest = "no_such_field: 1";
  weird.write_config(invalid);
  wait_for_reloads(weird, "failed", 1);
  EXPECT_EQ(weird.metric("weir_config_reloads_total", {{"result", "ok"}}), 0);
  EXPECT_TRUE(weird.wait_for_log("no_such_field"));
  EXPECT_EQ(get(weird.port(), "/").body, "old");
  EXPECT_EQ(weird.admin("/readyz").status, 200);

  weird.write_config(pointing_at(new_));
  wait_for_reloads(weird, "ok", 1);
  EXPECT_EQ(get(weird.port(), "/").body, "new");
}

TEST_F(Reload, AFileThatIsGoneChangesNothing) {
  WeirdProcess weird(pointing_at(old_));
  fs::remove(weird.config_file());
  weird.signal(SIGHUP);
  wait_for_reloads(weird, "failed", 1);
  EXPECT_EQ(get(weird.port(), "/").body, "old");
  weird.write_config(pointing_at(new_));
  wait_for_reloads(weird, "ok", 1);
  EXPECT_EQ(get(weird.port(), "/").body, "new");
}

TEST_F(Reload, WhatNeedsARestartIsRefusedWhole) {
  WeirdProcess weird(pointing_at(old_));
  int failed = 0;
  const auto expect_refused = [&](const std::string& field, const std::string& yaml) {
    SCOPED_TRACE(field);
    replace_file(weird.config_file(), yaml);
    wait_for_reloads(weird, "failed", ++failed);
    EXPECT_EQ(weird.metric("weir_config_reloads_total", {{"result", "failed"}}), failed);
    EXPECT_EQ(get(weird.port(), "/").body, "old") << "part of it was taken over";
    EXPECT_TRUE(weird.wait_for_log(field));
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string yaml = pointing_at(new_).yaml();
    return yaml.replace(yaml.find(from), from.size(), to);
  };
  expect_refused("listen", changed("listen: 127.0.0.1:0", "listen: 127.0.0.2:0"));
  expect_refused("admin", changed("admin: 127.0.0.1:0", "admin: 127.0.0.2:0"));
  expect_refused("workers", changed("workers: 2", "workers: 3"));
  expect_refused("replica", pointing_at(new_).yaml() + "replica: other\n");
  expect_refused("coordination", pointing_at(new_).yaml() + "coordination: {replicas: 2}\n");
  EXPECT_EQ(weird.metric("weir_config_reloads_total", {{"result", "ok"}}), 0);
}

TEST_F(Reload, ARequestUnderWayIsNotDisturbed) {
  Gate go_on;
  FakeUpstream thinking(after_request([&](UpstreamConnection& connection) {
    connection.wait(go_on);
    connection.send(answer(200, "thought"));
  }));
  WeirdProcess weird(pointing_at(thinking));
  RawClient client(weird.port());
  client.send(lines({"GET / HTTP/1.1", "Host: h"}));
  thinking.wait_for_requests(1);
  weird.write_config(pointing_at(new_));
  wait_for_reloads(weird, "ok", 1);
  go_on.open();
  EXPECT_EQ(client.read_answer().body, "thought");
  EXPECT_EQ(client.get("/").body, "new");
}

TEST_F(Reload, ARequestThatWaitsGoesByTheRuleThatItFoundThoughThatIsGone) {
  Config strict = pointing_at(old_);
  strict.rest = "rules:\n  - {name: strict, match: {path: /a}, limit: 1, window: 3s}\n";
  WeirdProcess weird(strict);
  wait_for_window(3s);
  EXPECT_EQ(get(weird.port(), "/a").body, "old");
  RawClient waiting = asking(weird, "/a");
  wait_for_line(weird, 1);
  weird.write_config(pointing_at(new_));
  wait_for_reloads(weird, "ok", 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get(weird.port(), "/a").body, "new") << "new rules";
  EXPECT_EQ(waiting.read_answer().body, "old");
  const auto counts = arrivals_by_window(old_, "/a", 3s);
  ASSERT_EQ(counts.size(), 2u) << "one in each window";
}

TEST_F(Reload, RulesAndLimitsFollow) {
  WeirdProcess weird(pointing_at(old_));
  RawClient client(weird.port());
  EXPECT_EQ(client.get("/").status, 200);
  Config changed = pointing_at(old_);
  changed.rest =
      "limits: {target_bytes: 100}\n"
      "rules:\n  - {name: fresh, match: {path: /fresh}, unlimited: true}";
  weird.write_config(changed);
  wait_for_reloads(weird, "ok", 1);
  EXPECT_EQ(get(weird.port(), "/fresh").status, 200);
  weird.wait_for_metric("weir_requests_total", {{"rule", "fresh"}, {"outcome", "ok"}}, 1);
  EXPECT_EQ(get(weird.port(), "/" + std::string(100, 'x')).status, 414);
}

}  // namespace
}  // namespace weir::test
