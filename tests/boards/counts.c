/* A plugin of QEMU's: at each call of the function at address AT, how many instructions have been
 * executed so far is written to the file OUT, a line each. Arguments: at=HEX,out=PATH.
 *
 * Debian has no header for plugins: what is used is declared here (QEMU's plugin interface, 1).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t qemu_plugin_id_t;
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
                                           void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int,
                                          void *);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int qemu_plugin_version = 1;

enum { WATCHED = 1 << 20 };

static uint64_t executed, watched;
static FILE *out;

static void run(unsigned processor, void *block)
{
    uintptr_t count = (uintptr_t)block;
    (void)processor;
    if (count & WATCHED) fprintf(out, "%" PRIu64 "\n", executed);
    executed += count & ~(uintptr_t)WATCHED;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    uintptr_t count = qemu_plugin_tb_n_insns(block);
    (void)id;
    if (qemu_plugin_tb_vaddr(block) == watched) count |= WATCHED;
    qemu_plugin_register_vcpu_tb_exec_cb(block, run, 0, (void *)count);
}

static void ended(qemu_plugin_id_t id, void *nothing)
{
    (void)id;
    (void)nothing;
    fclose(out);
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void)info;
    for (int k = 0; k < argc; k++) {
        if (!strncmp(argv[k], "at=", 3)) watched = strtoull(argv[k] + 3, NULL, 16);
        if (!strncmp(argv[k], "out=", 4)) out = fopen(argv[k] + 4, "w");
    }
    if (!out) return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
