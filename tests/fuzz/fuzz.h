/*
 * What the fuzz targets share: tests/fuzz/fuzz_NAME.c, each with the function
 * that libFuzzer calls. make fuzz links it with libFuzzer; make check with
 * replay.c, which goes through tests/fuzz/corpus/NAME.
 *
 * A target calls what a stranger's input reaches, and asserts what the headers
 * promise of the results. The sanitizers see the rest.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Takes any input; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file in memory with these bytes; the caller closes it. */
int fuzz_file(const uint8_t *bytes, size_t size);

struct fuzz_section {
	const char *name;
	uint32_t type;
	uint32_t link; /* of another section, counted from 1 */
	uint64_t entry_size;
	uint64_t addr; /* 0: where it is in the file */
	uint64_t flags;
	const uint8_t *bytes;
	size_t size;
};

#define FUZZ_SECTIONS_MAX 4
/* Where the first section begins in the file, and thus in memory. */
#define FUZZ_SECTIONS_AT 0x1000u
/* The one segment: from address 0 on, all of the file and more. */
#define FUZZ_SEGMENT_SIZE 0x100000u

/*
 * An ELF file for the unwinder's processor with these sections, of which
 * .eh_frame_hdr has a program header, too, so that
 * mutations go into what they hold and are not lost on headers. The caller
 * closes it.
 */
int fuzz_elf(const struct fuzz_section *v, size_t n);

/* An input that is read field by field; what it lacks is zero. */
struct fuzz_input {
	const uint8_t *bytes;
	size_t left;
};

void fuzz_take(struct fuzz_input *in, void *ret, size_t n);
/* The next n bytes or as many as there are, in place. */
const uint8_t *fuzz_take_bytes(struct fuzz_input *in, size_t *n);

#endif
