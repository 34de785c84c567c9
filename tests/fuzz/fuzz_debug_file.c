/*
 * Debug files. The first byte says what follows: the contents of .gnu_debuglink; of
 * .gnu_debugdata; a file that is compressed here, because checksums would stop every mutation; or
 * zstd data with its size in two bytes.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <elf.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include "lib/unwind/elf/unpack.h"
#include "lib/unwind/image/debug_file.h"

enum { LINK, PACKED, UNPACKED, ZSTD, KINDS };

#define PACKED_SIZE(n) ((n) + 1024)

/* The file that a link leads to. The corpus has its checksum. */
static const char debug_file[] = "a debug file";

static int no_image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	(void)ctx;
	(void)start;
	(void)end;
	(void)ret_fd;
	return -ENOENT;
}

/* Checks the name that is asked for. */
static int linked(void *ctx, uint64_t start, uint64_t end, const char *name, int *ret_fd)
{
	size_t n = strlen(name);

	(void)ctx;
	(void)start;
	(void)end;
	assert(n > 0 && n < UNWIND_DEBUG_LINK_MAX && name[0] != '.');
	for (size_t i = 0; i < n; i++)
		assert(name[i] > ' ' && name[i] < 0x7f && name[i] != '/');
	*ret_fd = fuzz_file((const void *)debug_file, strlen(debug_file));
	return 0;
}

static const struct unwind_files files = {.image = no_image, .debug_link = linked};

static void load(const char *name, const uint8_t *bytes, size_t size)
{
	const struct fuzz_section section = {
		.name = name, .type = SHT_PROGBITS, .bytes = bytes, .size = size};
	const struct image_identity identity = {.file.inode = 1};
	const struct file_source source = {.files = &files};
	int fd = fuzz_elf(&section, 1), debug_fd;
	struct image *image;
	uint64_t offset;

	assert(image_new(fd, &identity, 0, &image) == 0);
	assert(debug_file_open(image, fd, &source, &debug_fd) == 0);
	if (debug_fd < 0)
		assert(debug_file_unpack(fd, &debug_fd) == 0);
	assert(image_load_symbols(image, fd, debug_fd) == 0);
	(void)symbols_find(&image->symbols, FUZZ_SECTIONS_AT, &name, &offset);
	image_free(image);
	close_fd(&debug_fd);
	close_fd(&fd);
}

static void pack(const uint8_t *data, size_t size)
{
	uint8_t *out = malloc(PACKED_SIZE(size));
	size_t used = 0;

	assert(out);
	assert(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, data, size, out, &used,
				       PACKED_SIZE(size)) == LZMA_OK);
	load(".gnu_debugdata", out, used);
	free(out);
}

static void unpack(struct fuzz_input in)
{
	uint8_t size[2], *out;

	fuzz_take(&in, size, sizeof(size));
	if (unpack_zstd(in.bytes, in.left, (size_t)size[0] << 8 | size[1], &out) == 0)
		free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	switch (data[0] % KINDS) {
	case LINK:
		load(".gnu_debuglink", data + 1, size - 1);
		break;
	case PACKED:
		load(".gnu_debugdata", data + 1, size - 1);
		break;
	case UNPACKED:
		pack(data + 1, size - 1);
		break;
	case ZSTD:
		unpack((struct fuzz_input){data + 1, size - 1});
		break;
	}
	return 0;
}
