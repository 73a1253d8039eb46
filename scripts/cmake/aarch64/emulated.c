/* Runs an Arm program under the emulator, so that scripts call it like any other: emulated.cmake makes
 * one such file for each program. A program and not a script, and static, because what tests preload is
 * meant for the Arm program. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments) {
  char **line = calloc((size_t)count + 6, sizeof *line);
  int at = 0;
  if (line == NULL) return 126;
  line[at++] = EMULATOR;
  line[at++] = "-L"; /* the libraries' root: the machine's own, where arm64's lie beside amd64's */
  line[at++] = "/";
  line[at++] = "-0";
  line[at++] = arguments[0];
  line[at++] = PROGRAM;
  for (int i = 1; i < count; ++i) line[at++] = arguments[i];
  execvp(EMULATOR, line);
  perror(EMULATOR);
  return 126;
}
