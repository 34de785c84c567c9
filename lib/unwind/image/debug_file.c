#include "lib/unwind/image/debug_file.h"

#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "lib/base/file_name.h"
#include "lib/unwind/elf/build_id.h"
#include "lib/unwind/elf/unpack.h"

#define CRC_BLOCK 65536

/* The contents of .gnu_debuglink: a name, NUL, up to three bytes of padding, a checksum. */
#define LINK_MAX (UNWIND_DEBUG_LINK_MAX + 3 + 4)

/* Returns true if the file behind fd has this build-id. */
static bool has_build_id(int fd, const struct build_id *id)
{
	struct build_id its;
	struct elf_file f;

	if (elf_file_open(&f, fd))
		return false;
	build_id_read(&f, &its);
	elf_file_close(&f);
	return build_id_equal(&its, id);
}

/* Returns -EAGAIN for an error that does not say whether the file exists, otherwise 0. */
static int again_after(int error)
{
	return error == -ESRCH || error == -EIO || error == -ETIMEDOUT ? -EAGAIN : 0;
}

static int by_build_id(const struct image *i, const struct file_source *source, int *ret_fd)
{
	char hex[BUILD_ID_HEX_SIZE];
	int fd = -1;
	int r;

	if (!i->id.is_real || !source->files->debug)
		return 0;
	build_id_hex(&i->id, hex);
	reading_set(source->reading, 0);
	r = source->files->debug(source->ctx, hex, &fd);
	if (r)
		return again_after(r);
	file_source_mark(source);
	if (!has_build_id(fd, &i->id))
		close_fd(&fd);
	*ret_fd = fd;
	return 0;
}

bool debug_file_link(const struct elf_file *f, char ret_name[UNWIND_DEBUG_LINK_MAX],
		     uint32_t *ret_crc)
{
	uint8_t *bytes;
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_file_section(f, ".gnu_debuglink", &shdr);
	size_t size, crc_at;
	bool good = false;

	if (!scn || elf_file_contents(f, scn, &shdr, LINK_MAX, &bytes, &size))
		return false;
	if (file_name_is_plain((const char *)bytes, min_size(size, UNWIND_DEBUG_LINK_MAX))) {
		crc_at = align_up(strlen((const char *)bytes) + 1, 4);
		good = crc_at + sizeof(*ret_crc) <= size;
	}
	if (good) {
		memcpy(ret_crc, bytes + crc_at, sizeof(*ret_crc));
		memcpy(ret_name, bytes, strlen((const char *)bytes) + 1);
	}
	free(bytes);
	return good;
}

/* Returns true if the file has this checksum: the CRC-32 that xz (and zip) uses. */
static bool has_crc(int fd, uint32_t crc)
{
	uint8_t block[CRC_BLOCK];
	uint32_t its = 0;
	struct stat st;

	if (fstat(fd, &st) || st.st_size <= 0 || (uint64_t)st.st_size > DEBUG_FILE_LINKED_MAX)
		return false;
	for (uint64_t pos = 0; pos < (uint64_t)st.st_size;) {
		size_t n = (size_t)min_u64((uint64_t)st.st_size - pos, sizeof(block));

		if (elf_file_pread(fd, block, n, pos))
			return false;
		its = lzma_crc32(block, n, its);
		pos += n;
	}
	return its == crc;
}

static int by_link(const struct elf_file *f, const struct file_source *source, int *ret_fd)
{
	char name[UNWIND_DEBUG_LINK_MAX];
	uint32_t crc;
	int fd = -1;
	int r;

	if (!source->files->debug_link || !debug_file_link(f, name, &crc))
		return 0;
	reading_set(source->reading, 0);
	r = source->files->debug_link(source->ctx, source->start, source->end, name, &fd);
	if (r)
		return again_after(r);
	file_source_mark(source);
	if (!has_crc(fd, crc))
		close_fd(&fd);
	*ret_fd = fd;
	return 0;
}

/* Writes the bytes to a memfd, because debug files are read by descriptor. */
static int to_memfd(const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("debugdata", MFD_CLOEXEC);

	if (fd >= 0 && write_all(fd, bytes, size) < 0)
		close_fd(&fd);
	return fd;
}

static int from_debugdata(const struct elf_file *f, int *ret_fd)
{
	uint8_t *packed, *bytes;
	size_t packed_size, size;
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_file_section(f, ".gnu_debugdata", &shdr);
	int r;

	if (!scn)
		return 0;
	r = elf_file_contents(f, scn, &shdr, DEBUG_FILE_PACKED_MAX, &packed, &packed_size);
	if (r)
		return r == -ENOMEM ? r : 0;
	r = unpack_xz(packed, packed_size, DEBUG_FILE_PACKED_MAX, &bytes, &size);
	free(packed);
	if (r)
		return r == -ENOMEM ? r : 0;
	*ret_fd = to_memfd(bytes, size);
	free(bytes);
	return 0;
}

int debug_file_open(const struct image *i, int fd, const struct file_source *source, int *ret_fd)
{
	struct elf_file f;
	int r;

	*ret_fd = -1;
	r = by_build_id(i, source, ret_fd);
	if (*ret_fd >= 0)
		return 0;
	reading_set(source->reading, i->number);
	if (r || elf_file_open(&f, fd))
		return r;
	r = by_link(&f, source, ret_fd);
	elf_file_close(&f);
	if (*ret_fd < 0)
		reading_set(source->reading, i->number);
	return r;
}

int debug_file_unpack(int fd, int *ret_fd)
{
	struct elf_file f;
	int r;

	*ret_fd = -1;
	if (elf_file_open(&f, fd))
		return 0;
	r = from_debugdata(&f, ret_fd);
	elf_file_close(&f);
	return r;
}
