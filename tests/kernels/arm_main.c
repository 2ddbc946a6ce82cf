/* Runs steps that arm_program.py wrote, and prints their results. */
#include <stdint.h>
#include <stdio.h>

struct step {
    void (*kernel)(int64_t *);
    int64_t *record;
    const uint8_t *result;
    int64_t bytes;
};

extern const struct step steps[];

int main(void)
{
    for (const struct step *step = steps; step->kernel; step++) {
        step->kernel(step->record);
        for (int64_t k = 0; k < step->bytes; k++) printf("%02x", step->result[k]);
        printf("\n");
    }
    return 0;
}
