/* A whole ELF file, through everything that opens one except lines. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/unwind/elf/build_id.h"
#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/elf/leak_runtime.h"
#include "lib/unwind/image/image.h"

#define CONTENTS_MAX (1u << 20)

static void read_section(const struct elf_file *f, const char *name)
{
	uint8_t *bytes;
	GElf_Shdr shdr;
	size_t size, sum = 0;
	Elf_Scn *scn = elf_file_section(f, name, &shdr);

	if (!scn || elf_file_contents(f, scn, &shdr, CONTENTS_MAX, &bytes, &size))
		return;
	assert(size > 0 && size <= CONTENTS_MAX);
	for (size_t i = 0; i < size; i++)
		sum += bytes[i];
	assert(sum <= 255 * size);
	free(bytes);
}

static void use_image(struct image *i, int fd)
{
	uint64_t bias, offset, left;
	const char *name;

	if (image_bias(i, 0x400000, 0, true, &bias)) {
		assert(!image_has_code(i, bias, 0x400000, 0x400000));
		if (image_file_offset(i, i->base, &offset, &left))
			assert(left > 0);
	}
	if (image_load_rows(i, fd) || image_load_symbols(i, fd, fd))
		return;
	for (size_t k = 0; k < i->n_segments; k++) {
		uint64_t vaddr = i->segments[k].vaddr;
		const struct rows *rows = image_rows(i, vaddr);

		assert(rows_find(rows, vaddr));
		(void)symbols_find(&i->symbols, vaddr, &name, &offset);
		if (plt_covers(&i->plt, vaddr) && image_load_plt(i, fd) == 0)
			(void)plt_name(&i->plt, vaddr, &name, &offset);
	}
	assert(!i->is_elf || image_bytes(i) >= i->symbols.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {".text",	  ".eh_frame",	    ".debug_info",
					    ".debug_str", ".gnu_debugdata", ".gnu_debuglink"};
	const struct image_identity identity = {.file.inode = 1};
	int fd = fuzz_file(data, size);
	struct build_id id;
	struct elf_file f;
	struct image *image;

	if (elf_file_open(&f, fd) == 0) {
		build_id_read(&f, &id);
		assert(id.size <= BUILD_ID_MAX);
		assert(leak_runtime_find(&f) <= LEAK_RUNTIME_LSAN);
		for (size_t i = 0; i < array_size(names); i++)
			read_section(&f, names[i]);
		elf_file_close(&f);
	}
	if (image_new(fd, &identity, 0, &image) == 0) {
		use_image(image, fd);
		image_free(image);
	}
	close_fd(&fd);
	return 0;
}
