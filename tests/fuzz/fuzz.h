/*
 * Common code of the fuzz targets. A fuzz target is a file tests/fuzz/fuzz_NAME.c with the function
 * that libFuzzer calls. `make fuzz` links the file with libFuzzer. `make check` links it with
 * replay.c, which passes each file of tests/fuzz/corpus/NAME to the function.
 *
 * A fuzz target calls a parser of foreign input, and asserts what the parser's header promises. The
 * sanitizers find the other faults.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The function that libFuzzer calls, with any input. Defined by each fuzz target; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns a memfd with these bytes, which the caller closes. */
int fuzz_file(const uint8_t *bytes, size_t size);

struct fuzz_section {
	const char *name;
	uint32_t type;
	uint32_t link; /* sh_link: the number of another section, counted from 1; 0: none */
	uint64_t entry_size;
	uint64_t addr; /* in memory; 0: the same as the offset in the file */
	uint64_t flags;
	const uint8_t *bytes;
	size_t size;
};

#define FUZZ_SECTIONS_MAX 4
/* The offset of the first section in the file, and its address if addr is 0. */
#define FUZZ_SECTIONS_AT 0x1000u
/* The least size in memory of the only PT_LOAD segment: the whole file, from address 0 on. */
#define FUZZ_SEGMENT_SIZE 0x100000u

/*
 * Makes an ELF file for the unwinder's processor with these n sections, at most FUZZ_SECTIONS_MAX.
 * .eh_frame_hdr gets a program header, too. A fuzz target makes its input the content of a section,
 * so that mutations do not change the ELF headers. Returns a memfd, which the caller closes.
 */
int fuzz_elf(const struct fuzz_section *v, size_t n);

/* An input that is read field by field. The caller sets bytes and left. */
struct fuzz_input {
	const uint8_t *bytes;
	size_t left;
};

/* Copies the next n bytes to ret. If fewer are left, the others become 0. */
void fuzz_take(struct fuzz_input *in, void *ret, size_t n);
/*
 * Returns a pointer to the next *n bytes of the input. If fewer are left, sets *n to their number.
 */
const uint8_t *fuzz_take_bytes(struct fuzz_input *in, size_t *n);

#endif
