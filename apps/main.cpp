#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/explain.hpp"
#include "lib/core/error.hpp"

int main(int argc, char** argv) try {
  CLI::App app("mxfp4-repack " MXFP4_REPACK_VERSION);
  mxfp4::ExplainOptions options;
  CLI::App* explain = app.add_subcommand("explain");
  explain->add_option("--batch", options.batch)->required();
  explain->add_option("--revision", options.revision);
  explain->add_flag("-v", options.verbose);
  CLI11_PARSE(app, argc, argv);
  return explain->parsed() ? mxfp4::run_explain_batch(options) : 0;
} catch (const mxfp4::Error& error) {
  std::fprintf(stderr, "mxfp4-repack: error: %s\n", error.what());
  return error.kind() == mxfp4::ErrorKind::kInput ? 3 : 4;
}
