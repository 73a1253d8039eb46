#include <cstdio>

int main() { return std::puts("mxfp4-repack " MXFP4_REPACK_VERSION) < 0; }
