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

using Body = std::function<void(const Emit&)>;

std::string answer_of(const Body& body, ChildLimits limits = {}) {
  ChildProcess child(
      "the parser", [&](std::string_view /*request*/, const Emit& emit) { body(emit); }, limits);
  return child.ask("");
}

std::string child_refusal(const Body& body, ChildLimits limits = {}) {
  try {
    (void)answer_of(body, limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return std::string(error.what()) + "|" + error.hint_text();
  }
  return "returned";
}

TEST(ChildProcess, ReturnsWhatWasEmitted) {
  const std::string big(1 << 20, 'b');
  EXPECT_EQ(answer_of([&](const Emit& emit) {
              emit("a");
              emit("");
              emit(big);
            }),
            "a" + big);
}

// Requests change the child's memory and the shared one, not the parent's.
TEST(ChildProcess, AnswersOneRequestAfterAnother) {
  SharedMemory shared(4096);
  std::string said;
  ChildProcess child("the parser", [&](std::string_view request, const Emit& emit) {
    said += request;
    shared.bytes()[0] = static_cast<std::byte>(said.size());
    if (request == "bad") throw Error::input("a bad request");
    emit(said);
  });
  EXPECT_EQ(child.ask("one"), "one");
  EXPECT_THROW((void)child.ask("bad"), Error);
  EXPECT_EQ(child.ask("two"), "onebadtwo");
  EXPECT_EQ(shared.bytes()[0], std::byte{9});
  EXPECT_EQ(said, "");
}

TEST(ChildProcess, RefusesEveryRequestAfterItsDeath) {
  ChildProcess child("the parser",
                     [](std::string_view /*request*/, const Emit&) { (void)::raise(SIGILL); });
  for (int i = 0; i < 2; ++i) EXPECT_THROW((void)child.ask(""), Error);
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
  const Body slow = [](const Emit& emit) {
    ::usleep(200'000);
    emit("a");
  };
  EXPECT_EQ(answer_of(slow, {.cpu_time = 100ms, .wall_time = 300s}), "a");
}

}  // namespace
}  // namespace mxfp4
