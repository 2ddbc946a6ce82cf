// Runs the self test of @NAME@, and prints on the serial line, 115200 baud, whether its
// results are those of the computer that wrote it: @NAME@_test.c says what they are.
#include "src/@NAME@.h"

extern "C" int @NAME@_test(void);

void setup()
{
    Serial.begin(115200);
    while (!Serial) {}
    Serial.println(@NAME@_test() ? "@NAME@: FAIL" : "@NAME@: PASS");
}

void loop() {}
