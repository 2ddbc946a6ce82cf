# Builds the network @NAME@, and a program that runs its self test: make test
CFLAGS ?= -O2

@NAME@_self_test: main.o @NAME@.o @NAME@_test.o
	$(CC) $(LDFLAGS) $^ -o $@

%.o: %.c @NAME@.h
	$(CC) -std=c99 -Wall -Wextra $(CFLAGS) -c $< -o $@

test: @NAME@_self_test
	./@NAME@_self_test

clean:
	rm -f *.o @NAME@_self_test

.PHONY: test clean
