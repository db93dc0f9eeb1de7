# SPDX-License-Identifier: Apache-2.0
#
# What does arithmetic, built for AArch64 by a cross compiler, its warnings errors, and the tests of
# kernels run under qemu, with NEON kernels in the place of AVX2's. In an empty folder:
#
#	make -f TREE/tests/pipeline/arm.mk check
#
# Files that include a foreign library's header are left out, as that library is not there for the
# other machine; so are all tests that reach them. arm/check.h stands in for Check.

top := $(patsubst %/tests/pipeline/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
CC = aarch64-linux-gnu-gcc
AR = aarch64-linux-gnu-ar
RUN = qemu-aarch64-static
CFLAGS = -O2 -g
flags = -std=gnu11 -pthread -ffp-contract=off -D_GNU_SOURCE $(without) -I$(top) -MMD -MP -Wall -Wextra -Wshadow \
	-Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla -Wimplicit-fallthrough -Werror

without = -DHAS_PNG=0 -DHAS_TIFF=0 -DHAS_WEBP=0 -DHAS_GIF=0 -DHAS_AVIF=0 -DHAS_JP2=0 -DHAS_JXL=0 -DHAS_HEIF=0
foreign = (event2|jansson|seccomp|jpeglib|jerror|tiffio|webp|avif|jxl|libheif|openjpeg|spng|gif_lib|sndfile|mpg123|soxr|libav[a-z]*|libsw[a-z]*|zlib|zstd|xxhash|sha2|md5)(/.*)?\.h
sources := $(sort $(filter-out base/library.c pipeline/sound/sound_decode.c pipeline/video/video_load.c, \
	$(shell cd $(top) && grep -LE '^.include <$(foreign)>' base/*.c pipeline/*.c pipeline/*/*.c)))
objects := $(sources:.c=.o)
tests := base/exact_test base/half_test base/philox_test pipeline/baseline_kernel_test pipeline/colour_test \
	pipeline/fingerprint_test pipeline/finish_test pipeline/kernel_test pipeline/plane_test

.PHONY: all check
.SECONDARY:
all: arithmetic.a $(tests)
check: $(tests:=.ran)

arithmetic.a: $(objects)
	@rm -f $@
	$(AR) rcs $@ $^

$(objects): %.o: $(top)/%.c
	@mkdir -p $(@D)
	$(CC) $(flags) $(CFLAGS) -c -o $@ $<

$(tests): %: $(top)/tests/%.c arithmetic.a
	@mkdir -p $(@D)
	$(CC) $(flags) $(CFLAGS) -I$(top)/tests/pipeline/arm -static -o $@ $(filter %.c,$^) arithmetic.a -lm
pipeline/kernel_test: $(top)/tests/pipeline/resize_plain.c

$(tests:=.ran): %.ran: %
	$(RUN) ./$< >$<.log 2>&1 || { cat $<.log; exit 1; }
	@tail -n 1 $<.log
	@touch $@

-include $(objects:.o=.d) $(tests:=.d)
