#include "daemon/unwind/file_look.h"

#include <string.h>

#include "daemon/msg/msg.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/ipc.h"
#include "lib/unwind/elf/build_id.h"
#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/elf/gopclntab.h"
#include "lib/unwind/elf/leak_runtime.h"
#include "lib/unwind/image/debug_file.h"

/*
 * Bytes of code for a byte of call frame information, at most, in a file whose code has it: of
 * 1,900 files of Debian and others all have 201 at most. The C runtime's start and the PLT alone
 * have one for 637 and more (GHC's programs, musl's libc.so, Go with cgo).
 */
#define CODE_OF_CFI_MAX 256

/* Returns 0 if the file has no such section, or no contents for it. */
static uint64_t section_size(const struct elf_file *f, const char *name)
{
	GElf_Shdr header;

	return elf_file_section(f, name, &header) != NULL && header.sh_type != SHT_NOBITS
		       ? header.sh_size
		       : 0;
}

static bool has_section(const struct elf_file *f, const char *name)
{
	return section_size(f, name) > 0;
}

/* Returns the size of the first segment with code in the file. */
static uint64_t code_size(const struct elf_file *f)
{
	GElf_Phdr p;

	for (size_t i = 0; i < f->n_phdrs; i++)
		if (gelf_getphdr(f->elf, (int)i, &p) != NULL && p.p_type == PT_LOAD &&
		    (p.p_flags & PF_X) != 0)
			return p.p_filesz;
	return 0;
}

static bool has_cfi(const struct elf_file *f)
{
	const uint64_t size_min = max_u64(code_size(f) / CODE_OF_CFI_MAX, 1);
	GElf_Phdr header;

	return section_size(f, ".eh_frame") >= size_min ||
	       section_size(f, ".debug_frame") >= size_min ||
	       (!has_section(f, ".eh_frame") && elf_file_phdr(f, PT_GNU_EH_FRAME, &header));
}

/* Returns the reason why elf_file_open() has refused the file. */
static enum file_verdict why_refused(int fd)
{
	uint8_t ident[EI_NIDENT];

	if (elf_file_pread(fd, ident, sizeof(ident), 0) < 0 || memcmp(ident, ELFMAG, SELFMAG) != 0)
		return FILE_NO_ELF;
	return ident[EI_CLASS] == ELFCLASS32 ? FILE_32_BIT : FILE_DAMAGED;
}

static enum file_leaks leaks_of(enum leak_runtime runtime)
{
	switch (runtime) {
	case LEAK_RUNTIME_NONE:
		break;
	case LEAK_RUNTIME_ASAN:
		return FILE_LEAKS_ASAN;
	case LEAK_RUNTIME_LSAN:
		return FILE_LEAKS_LSAN;
	}
	return FILE_LEAKS_NONE;
}

static bool has_go_table(const struct elf_file *f)
{
	struct gopclntab t;

	if (gopclntab_open(f, &t) < 0)
		return false;
	gopclntab_close(&t);
	return true;
}

static void read_file(const struct elf_file *f, struct msg_file_seen *ret)
{
	struct build_id id;

	build_id_read(f, &id);
	if (id.is_real)
		build_id_hex(&id, ret->build_id);
	ret->has_cfi = has_cfi(f);
	ret->has_symbols = has_section(f, ".symtab") || has_section(f, ".gnu_debugdata");
	ret->has_go_table = (!ret->has_cfi || !ret->has_symbols) && has_go_table(f);
	ret->has_cfi = ret->has_cfi || (ret->has_go_table && GOPCLNTAB_HAS_ROWS);
	ret->has_debug_info = has_section(f, ".debug_info");
	(void)debug_file_link(f, ret->debug_link, &ret->debug_crc);
	ret->leaks = leaks_of(leak_runtime_find(f));
}

int file_look(int fd, const struct msg_file_look *m, uint32_t *reading)
{
	struct msg_file_seen seen = {
		.h = MSG_HEADER(MSG_FILE_SEEN),
		.id = m->id,
		.verdict = FILE_READ,
	};
	struct elf_file f;

	__atomic_store_n(reading, m->number, __ATOMIC_RELAXED);
	if (elf_file_open(&f, fd) == 0) {
		read_file(&f, &seen);
		elf_file_close(&f);
	} else {
		seen.verdict = why_refused(fd);
	}
	__atomic_store_n(reading, 0, __ATOMIC_RELAXED);
	return ipc_send(MSG_FD, &seen, sizeof(seen), NULL, 0);
}
