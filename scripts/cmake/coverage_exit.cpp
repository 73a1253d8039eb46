// Of a build that counts what runs (scripts/coverage): _exit() with what was counted so far. The
// linker gives both names.
extern "C" {
void __gcov_dump(void);
[[noreturn]] void __real__exit(int code);
[[noreturn]] void __wrap__exit(int code) {
  __gcov_dump();
  __real__exit(code);
}
}  // extern "C"
