// Users, and connections that are encrypted.

#include <gtest/gtest.h>

#include <fstream>

#include "tests/contract/store_contract.h"
#include "tests/etcd/etcd_loop.h"
#include "tests/support/etcd_cluster.h"

namespace weir::test {
namespace {

using Kind = StoreError::Kind;

bool is_done(const Answer<TxnAnswer>& answer) { return std::holds_alternative<TxnAnswer>(answer); }

class EtcdSecurity : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }

  // Users root and weir, who has rights under /weir only.
  static void set_up_users(EtcdCluster& cluster) {
    cluster.etcdctl({"user", "add", "root:secret"});
    cluster.etcdctl({"user", "grant-role", "root", "root"});
    cluster.etcdctl({"role", "add", "weir"});
    cluster.etcdctl({"role", "grant-permission", "weir", "readwrite", "--prefix=true", "/weir/"});
    cluster.etcdctl({"user", "add", "weir:open sesame"});
    cluster.etcdctl({"user", "grant-role", "weir", "weir"});
    cluster.etcdctl({"auth", "enable"});
  }
  EtcdOptions as_weir(const EtcdCluster& cluster) const {
    EtcdOptions options = options_for(cluster.endpoints());
    options.username = "weir";
    options.password_file = write("password", "open sesame\n");
    return options;
  }

  void openssl(std::vector<std::string> arguments) const {
    const Ran ran = run_program("/usr/bin/openssl", {.arguments = std::move(arguments)});
    if (ran.code != 0) throw std::runtime_error("openssl: " + ran.error);
  }
  // <name>.crt and <name>.key, which it signs itself.
  void make_authority(const std::string& name) const {
    openssl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=" + name, "-keyout", file(name + ".key"), "-out",
             file(name + ".crt")});
  }
  void make_certificate(const std::string& name, const std::string& authority) const {
    openssl({"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
             "/CN=" + name, "-keyout", file(name + ".key"), "-out", file(name + ".csr")});
    const std::string extensions = write(name + ".ext",
                                         "subjectAltName=IP:127.0.0.1,DNS:localhost\n"
                                         "extendedKeyUsage=serverAuth,clientAuth\n");
    openssl({"x509", "-req", "-in", file(name + ".csr"), "-CA", file(authority + ".crt"), "-CAkey",
             file(authority + ".key"), "-CAcreateserial", "-days", "2", "-extfile", extensions,
             "-out", file(name + ".crt")});
  }
  EtcdSettings encrypted(std::vector<std::string> more = {}) const {
    EtcdSettings settings;
    settings.scheme = "https";
    settings.flags = {"--cert-file=" + file("server.crt"), "--key-file=" + file("server.key")};
    settings.flags.insert(settings.flags.end(), more.begin(), more.end());
    settings.etcdctl_flags = {"--cacert=" + file("ca.crt"), "--cert=" + file("client.crt"),
                              "--key=" + file("client.key")};
    return settings;
  }
  void make_certificates() const {
    make_authority("ca");
    make_certificate("server", "ca");
    make_certificate("client", "ca");
  }

  TemporaryFolder folder_;
};

TEST_F(EtcdSecurity, AUserIsLoggedInBeforeTheFirstCall) {
  EtcdCluster cluster;
  set_up_users(cluster);
  EtcdLoop loop(as_weir(cluster));
  EXPECT_TRUE(is_done(loop.put("/weir/a")));
  const auto elsewhere = loop.put("/elsewhere");
  EXPECT_EQ(std::get<StoreError>(elsewhere).kind, Kind::not_applied) << "no rights there";
  EXPECT_TRUE(std::holds_alternative<LeaseTerm>(loop.grant(1, 60s)));
  EXPECT_EQ(std::get<LeaseTerm>(loop.keep_alive(1)).ttl, 60s);
  Seen seen;
  const auto watch = loop.store().watch(keys_under("/weir/"), 1, seen.handler());
  EXPECT_TRUE(loop.run_until([&] { return !seen.steps.empty(); }));
}

TEST_F(EtcdSecurity, ATokenThatRanOutIsReplacedAndWatchesGoOn) {
  EtcdCluster cluster({.flags = {"--auth-token-ttl=5"}});
  set_up_users(cluster);
  EtcdLoop loop(as_weir(cluster));
  ASSERT_TRUE(is_done(loop.put("/weir/a")));
  Seen seen;
  const auto watch = loop.store().watch(keys_under("/weir/"), 1, seen.handler());
  ASSERT_TRUE(loop.run_until([&] { return seen.steps.size() == 1; }));
  loop.run_for(8s);  // nobody uses it
  const auto refused = loop.put("/weir/a");
  ASSERT_FALSE(is_done(refused)) << "the token has not run out: this shows nothing";
  EXPECT_EQ(std::get<StoreError>(refused).kind, Kind::not_applied);
  EXPECT_TRUE(is_done(loop.put("/weir/a"))) << "the next one has a new token";
  EXPECT_TRUE(loop.run_until([&] { return seen.steps.size() == 2; }));
  EXPECT_EQ(seen.lost, 0);
  EXPECT_TRUE(loop.downs.empty());
}

TEST_F(EtcdSecurity, AWatchRefusedForAnOldTokenGetsANewOne) {
  EtcdCluster cluster({.flags = {"--auth-token-ttl=5"}});
  set_up_users(cluster);
  EtcdLoop loop(as_weir(cluster));
  ASSERT_TRUE(is_done(loop.put("/weir/a")));
  loop.run_for(8s);
  Seen refused, seen;
  const auto first = loop.store().watch(keys_under("/weir/"), 1, refused.handler());
  ASSERT_TRUE(loop.run_until([&] { return refused.lost == 1; }));
  const auto second = loop.store().watch(keys_under("/weir/"), 1, seen.handler());
  EXPECT_TRUE(loop.run_until([&] { return !seen.steps.empty(); }));
}

TEST_F(EtcdSecurity, AChangeOfRightsAsksForAnotherLogin) {
  EtcdCluster cluster;
  set_up_users(cluster);
  EtcdLoop loop(as_weir(cluster));
  ASSERT_TRUE(is_done(loop.put("/weir/a")));
  loop.run_for(1100ms);  // one login a second
  cluster.etcdctl({"--user=root:secret", "role", "grant-permission", "weir", "read", "/other"});
  EXPECT_TRUE(loop.put_at_last("/weir/a", 10s));
  EXPECT_TRUE(loop.downs.empty());
}

TEST_F(EtcdSecurity, EveryMemberHasATokenOfItsOwn) {
  EtcdCluster cluster({.members = 3});
  set_up_users(cluster);
  EtcdLoop loop(as_weir(cluster));
  ASSERT_TRUE(loop.put_at_last("/weir/a"));
  for (std::size_t member = 0; member < 3; ++member) {
    cluster.kill(member);
    EXPECT_TRUE(loop.put_at_last("/weir/a"));
    cluster.start(member);
    EXPECT_TRUE(loop.put_at_last("/weir/a"));
  }
}

TEST_F(EtcdSecurity, AWrongPasswordIsToldAndARightOneTakenOver) {
  EtcdCluster cluster;
  set_up_users(cluster);
  EtcdOptions options = as_weir(cluster);
  write("password", "wrong");
  EtcdLoop loop(options);
  EXPECT_EQ(std::get<StoreError>(loop.put("/weir/a")).kind, Kind::not_applied);
  ASSERT_TRUE(loop.run_until([&] { return !loop.downs.empty(); }));
  EXPECT_NE(loop.downs.front().find("authentication failed"), std::string::npos);
  EXPECT_EQ(loop.downs.front().find("wrong"), std::string::npos);
  write("password", "open sesame");
  EXPECT_TRUE(loop.put_at_last("/weir/a", 10s));
}

TEST_F(EtcdSecurity, AUserIsNoTroubleForAnEtcdWithoutUsersAndCountsOnceThereAreSome) {
  EtcdCluster cluster;
  EtcdLoop loop(as_weir(cluster));
  ASSERT_TRUE(is_done(loop.put("/weir/a")));
  loop.run_for(1100ms);  // one login a second
  set_up_users(cluster);
  EXPECT_TRUE(loop.put_at_last("/weir/a", 10s));
}

TEST_F(EtcdSecurity, AnEncryptedEtcdIsTrustedByItsAuthority) {
  make_certificates();
  EtcdCluster cluster(encrypted());
  EtcdOptions options = options_for(cluster.endpoints());
  options.tls_ca = file("ca.crt");
  EtcdLoop loop(options);
  EXPECT_TRUE(is_done(loop.put("a")));
  Seen seen;
  const auto watch = loop.store().watch(keys_under("a"), 1, seen.handler());
  EXPECT_TRUE(loop.run_until([&] { return !seen.steps.empty(); }));
}

TEST_F(EtcdSecurity, AnEtcdThatNobodyVouchesForIsNotUsed) {
  make_certificates();
  make_authority("other");
  EtcdCluster cluster(encrypted());
  for (const std::string& authority : {file("other.crt"), std::string()}) {
    EtcdOptions options = options_for(cluster.endpoints());
    options.tls_ca = authority;
    EtcdLoop loop(options);
    EXPECT_EQ(std::get<StoreError>(loop.put("a")).kind, Kind::not_applied);
    EXPECT_TRUE(loop.run_until([&] { return !loop.downs.empty(); }));
    EXPECT_EQ(loop.ups, 0);
  }
}

TEST_F(EtcdSecurity, AnEtcdThatWantsOurNameGetsIt) {
  make_certificates();
  EtcdCluster cluster(
      encrypted({"--client-cert-auth=true", "--trusted-ca-file=" + file("ca.crt")}));
  EtcdOptions options = options_for(cluster.endpoints());
  options.tls_ca = file("ca.crt");
  EtcdLoop without(options);
  EXPECT_EQ(std::get<StoreError>(without.put("a")).kind, Kind::not_applied);
  options.tls_cert = file("client.crt");
  options.tls_key = file("client.key");
  EtcdLoop with(options);
  EXPECT_TRUE(is_done(with.put("a")));
}

// The member comes back with a certificate of another authority, and so does the file.
TEST_F(EtcdSecurity, ChangedFilesAreTakenOver) {
  make_certificates();
  EtcdCluster cluster(encrypted());
  EtcdOptions options = options_for(cluster.endpoints());
  options.tls_ca = file("ca.crt");
  EtcdLoop loop(options);
  ASSERT_TRUE(is_done(loop.put("a")));
  cluster.kill(0);
  make_certificates();
  cluster.start(0);
  cluster.wait_until_healthy();
  EXPECT_TRUE(loop.put_at_last("a"));
}

}  // namespace
}  // namespace weir::test
