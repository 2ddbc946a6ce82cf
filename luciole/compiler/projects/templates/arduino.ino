// Runs the self test of @NAME@, and prints what came of it on the serial line, 115200 baud.
#include "src/@NAME@.h"

extern "C" int @NAME@_test(void);

void setup()
{
    Serial.begin(115200);
    while (!Serial) {}
    Serial.println(@NAME@_test() ? "@NAME@: FAIL" : "@NAME@: PASS");
}

void loop() {}
