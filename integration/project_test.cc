// That nothing of a cluster outlives its test.

#include "integration/project.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>

#include "tests/support/eventually.h"

namespace weir::test {
namespace {

std::string left_of(const std::string& project) {
  const std::string label = "label=com.docker.compose.project=" + project;
  std::string left;
  for (const std::vector<std::string>& kind : {std::vector<std::string>{"container", "ls", "-aq"},
                                               {"network", "ls", "-q"},
                                               {"volume", "ls", "-q"}}) {
    std::vector<std::string> arguments = kind;
    arguments.insert(arguments.end(), {"--filter", label});
    left += docker(std::move(arguments));
  }
  return left;
}

TEST(IntegrationProject, NothingIsLeftOfOneWhoseTestIsKilledWhileItIsBroughtUp) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const Project project({"integration/compose.yml"}, {{"WEIR_IMAGES", "weir-integration"}});
    ::dprintf(ends[1], "%s\n", project.name().c_str());
    project.compose({"up", "-d", "--no-build", "etcd1", "etcd2", "etcd3"});
    ::_exit(1);  // later than it should
  }
  char told[100] = "";
  const auto length = ::read(ends[0], told, sizeof told);
  ASSERT_GT(length, 1);
  const std::string name(told, static_cast<std::size_t>(length - 1));
  eventually("some of its containers are there", [&] {
    return !docker({"ps", "-aq", "--filter", "label=com.docker.compose.project=" + name}).empty();
  });
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it was there to be killed";
  const Span took = eventually(
      "nothing of it is left, and nothing comes back",
      [&] {
        if (!left_of(name).empty()) return false;
        let_run(3s);  // longer than docker-compose takes from one container to the next
        return left_of(name).empty();
      },
      60s);
  std::cout << "gone after " << took.count() << " ms\n";
}

}  // namespace
}  // namespace weir::test
