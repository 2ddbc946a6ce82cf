# Builds the network @NAME@, and a program that runs its self test: make test
# Flags of the target, with the board's start and linker script in LDFLAGS, an emulator in RUN:
#   make clean && make CC=@COMPILER@ CFLAGS="@FLAGS@"
CFLAGS ?= -O2

@NAME@_self_test: main.o @NAME@.o @NAME@_test.o
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

%.o: %.c @NAME@.h
	$(CC) -std=c99 -Wall -Wextra $(CFLAGS) -c $< -o $@

test: @NAME@_self_test
	$(RUN) ./@NAME@_self_test

clean:
	rm -f *.o @NAME@_self_test

.PHONY: test clean
