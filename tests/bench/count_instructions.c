/* A plug-in of QEMU's user emulation: writes how many instructions of each function were executed to the file
 * that COUNT_OUT names, a line for each: number, space, symbol ("?" for what has none). For programs with one
 * thread that works: the counters are plain. tests/bench/instructions builds and uses it.
 *
 * QEMU's header for plug-ins is in no Debian package. What is declared here is version 1 of that interface
 * (qemu-plugin.h of QEMU 4.2 to 8). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t Id;
typedef struct qemu_plugin_tb Block; /* instructions that run one after another */
typedef struct qemu_plugin_insn Instruction;
enum { ADD_U64 = 0, TABLE = 1 << 16 };

void qemu_plugin_register_vcpu_tb_trans_cb(Id id, void (*translated)(Id, Block *));
size_t qemu_plugin_tb_n_insns(const Block *block);
Instruction *qemu_plugin_tb_get_insn(const Block *block, size_t index);
const char *qemu_plugin_insn_symbol(const Instruction *instruction);
void qemu_plugin_register_vcpu_insn_exec_inline(Instruction *instruction, int operation, void *counter, uint64_t by);
void qemu_plugin_register_atexit_cb(Id id, void (*ended)(Id, void *), void *data);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static struct {
  char *symbol;
  uint64_t count;
} table[TABLE];

/* The counter of a function, by open addressing. */
static uint64_t *counter_of(const char *symbol) {
  if (symbol == NULL || *symbol == 0) symbol = "?";
  uint64_t at = 0;
  for (const char *letter = symbol; *letter != 0; ++letter) at = at * 31 + (unsigned char)*letter;
  for (size_t i = 0; i < TABLE; ++i, ++at) {
    if (table[at % TABLE].symbol == NULL) table[at % TABLE].symbol = strdup(symbol);
    if (strcmp(table[at % TABLE].symbol, symbol) == 0) return &table[at % TABLE].count;
  }
  fputs("count_instructions: too many functions\n", stderr);
  exit(1);
}

static void count(Id id, Block *block) {
  (void)id;
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); ++i) {
    Instruction *instruction = qemu_plugin_tb_get_insn(block, i);
    qemu_plugin_register_vcpu_insn_exec_inline(instruction, ADD_U64, counter_of(qemu_plugin_insn_symbol(instruction)), 1);
  }
}

static void write_counts(Id id, void *data) {
  (void)id, (void)data;
  const char *name = getenv("COUNT_OUT");
  FILE *out = name != NULL ? fopen(name, "w") : NULL;
  if (out == NULL) {
    fputs("count_instructions: COUNT_OUT names no file that can be written\n", stderr);
    return;
  }
  for (size_t i = 0; i < TABLE; ++i) {
    if (table[i].symbol != NULL) fprintf(out, "%llu %s\n", (unsigned long long)table[i].count, table[i].symbol);
  }
  fclose(out);
}

__attribute__((visibility("default"))) int qemu_plugin_install(Id id, const void *info, int count_of_arguments, char **arguments) {
  (void)info, (void)count_of_arguments, (void)arguments;
  qemu_plugin_register_vcpu_tb_trans_cb(id, count);
  qemu_plugin_register_atexit_cb(id, write_counts, NULL);
  return 0;
}
