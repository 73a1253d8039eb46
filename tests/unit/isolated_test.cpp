// What happens in the child stays in the child.
#include "formats/os/isolated.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <ctime>
#include <stdexcept>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

std::string refusal(const std::function<void(const Emit&)>& body, Patience patience = {}) {
  try {
    (void)run_isolated("the parser", body, patience);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return std::string(error.what()) + "|" + error.hint_text();
  }
  return "returned";
}

TEST(Isolated, ReturnsWhatWasEmitted) {
  const std::string big(1 << 20, 'b');
  EXPECT_EQ(run_isolated("the parser",
                         [&](const Emit& emit) {
                           emit("a");
                           emit("");
                           emit(big);
                         }),
            "a" + big);
}

TEST(Isolated, LeavesTheParentsMemoryAlone) {
  int value = 1;
  (void)run_isolated("the parser", [&](const Emit&) { value = 2; });
  EXPECT_EQ(value, 1);
}

TEST(Isolated, PassesErrorsOn) {
  EXPECT_EQ(refusal([](const Emit& emit) {
              emit("partial");
              throw Error::input("bad file").hint("throw it away");
            }),
            "bad file|throw it away");
  EXPECT_EQ(refusal([](const Emit&) { throw std::runtime_error("odd"); }), "odd|");
}

TEST(Isolated, SurvivesACrash) {
  EXPECT_EQ(refusal([](const Emit& emit) {
              emit("partial");
              (void)::raise(SIGKILL);
            }),
            "the parser failed (signal 9): damaged file|");
}

// What computes without end is cut off by its processor time, what sleeps by the clock.
TEST(Isolated, LosesPatience) {
  using namespace std::chrono_literals;
  EXPECT_EQ(refusal(
                [](const Emit& emit) {
                  emit("partial");
                  while (true) (void)::clock();
                },
                {.computing = 50ms, .waiting = 300s}),
            "the parser came to no end: damaged file|");
  EXPECT_EQ(refusal([](const Emit&) { ::pause(); }, {.computing = 300s, .waiting = 50ms}),
            "the parser gave no answer|does the storage that holds the file answer?");
}

TEST(Isolated, WaitsForWhatIsSlow) {
  using namespace std::chrono_literals;
  EXPECT_EQ(run_isolated("the parser",
                         [](const Emit& emit) {
                           ::usleep(200'000);
                           emit("a");
                         },
                         {.computing = 100ms, .waiting = 300s}),
            "a");
}

}  // namespace
}  // namespace mxfp4
