# Builds @NAME@.hex for the BBC micro:bit (version 1: nRF51822, Cortex-M0): make
# Copy it to the drive MICROBIT; the self test's result is on the serial line, 115200 baud.
# Needs Debian's gcc-arm-none-eabi and libnewlib-arm-none-eabi. Without a board, with QEMU: make run
CROSS ?= arm-none-eabi-
FLAGS = -mcpu=cortex-m0 -mthumb -Os -std=c99 -Wall -Wextra -ffunction-sections -fdata-sections

@NAME@.hex: @NAME@.elf
	$(CROSS)objcopy -O ihex $< $@
	$(CROSS)size $<

@NAME@.elf: board.o main.o @NAME@.o @NAME@_test.o microbit.ld
	$(CROSS)gcc $(FLAGS) -nostartfiles -specs=nano.specs -Wl,--gc-sections -Tmicrobit.ld $(filter %.o,$^) -o $@

%.o: %.c @NAME@.h board.h
	$(CROSS)gcc $(FLAGS) -c $< -o $@

run: @NAME@.elf
	qemu-system-arm -M microbit -nographic -monitor none -serial stdio -kernel $<

clean:
	rm -f *.o @NAME@.elf @NAME@.hex

.PHONY: run clean
