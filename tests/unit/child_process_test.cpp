// What happens in the child stays in the child.
#include "formats/os/child_process.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <ctime>
#include <new>
#include <stdexcept>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

std::string child_refusal(const std::function<void(const Emit&)>& body, ChildLimits limits = {}) {
  try {
    (void)run_in_child("the parser", body, limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return std::string(error.what()) + "|" + error.hint_text();
  }
  return "returned";
}

TEST(ChildProcess, ReturnsWhatWasEmitted) {
  const std::string big(1 << 20, 'b');
  EXPECT_EQ(run_in_child("the parser",
                         [&](const Emit& emit) {
                           emit("a");
                           emit("");
                           emit(big);
                         }),
            "a" + big);
}

TEST(ChildProcess, LeavesTheParentsMemoryAlone) {
  int value = 1;
  (void)run_in_child("the parser", [&](const Emit&) { value = 2; });
  EXPECT_EQ(value, 1);
}

TEST(ChildProcess, PassesErrorsOn) {
  EXPECT_EQ(child_refusal([](const Emit& emit) {
              emit("partial");
              throw Error::input("bad file").hint("throw it away");
            }),
            "bad file|throw it away");
  EXPECT_EQ(child_refusal([](const Emit&) { throw std::runtime_error("odd"); }), "odd|");
}

TEST(ChildProcess, SurvivesACrash) {
  EXPECT_EQ(child_refusal([](const Emit& emit) {
              emit("partial");
              (void)::raise(SIGILL);
            }),
            "the parser failed (signal 4): damaged file|");
  // Which the kernel does when memory is short.
  EXPECT_EQ(child_refusal([](const Emit&) { (void)::raise(SIGKILL); }),
            "the parser was killed (signal 9)|the system kills a process if memory is short");
  EXPECT_EQ(child_refusal([](const Emit&) { throw std::bad_alloc(); }),
            "the parser takes more than 1 GiB of memory: damaged file|");
}

// What computes without end is cut off by its processor time, what sleeps by the clock.
TEST(ChildProcess, EndsAChildThatIsSilent) {
  using namespace std::chrono_literals;
  EXPECT_EQ(child_refusal(
                [](const Emit& emit) {
                  emit("partial");
                  while (true) (void)::clock();
                },
                {.cpu_time = 50ms, .wall_time = 300s}),
            "the parser came to no end: damaged file|");
  EXPECT_EQ(child_refusal([](const Emit&) { ::pause(); }, {.cpu_time = 300s, .wall_time = 50ms}),
            "the parser gave no answer|does the storage that holds the file answer?");
}

TEST(ChildProcess, WaitsForWhatIsSlow) {
  using namespace std::chrono_literals;
  EXPECT_EQ(run_in_child("the parser",
                         [](const Emit& emit) {
                           ::usleep(200'000);
                           emit("a");
                         },
                         {.cpu_time = 100ms, .wall_time = 300s}),
            "a");
}

}  // namespace
}  // namespace mxfp4
