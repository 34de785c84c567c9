#include "daemon/unwind/file_look.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/msg/msg.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/ipc.h"
#include "lib/unwind/elf/build_id.h"
#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/elf/gopclntab.h"
#include "lib/unwind/elf/leak_runtime.h"

/* Bytes of code that are searched for the beginnings of functions. */
#define CODE_MAX (1u << 20)

static bool has_section(const struct elf_file *f, const char *name)
{
	GElf_Shdr header;

	return elf_file_section(f, name, &header) != NULL && header.sh_type != SHT_NOBITS &&
	       header.sh_size > 0;
}

static bool find_code(const struct elf_file *f, GElf_Phdr *ret)
{
	for (size_t i = 0; i < f->n_phdrs; i++)
		if (gelf_getphdr(f->elf, (int)i, ret) != NULL && ret->p_type == PT_LOAD &&
		    (ret->p_flags & PF_X) != 0)
			return true;
	return false;
}

/* Searches for push %rbp; mov %rsp,%rbp, with which a function sets its frame pointer. */
static bool keeps_frame_pointers(const struct elf_file *f)
{
	static const uint8_t begins[] = {0x55, 0x48, 0x89, 0xe5};
	GElf_Phdr code;
	uint8_t *bytes;
	size_t size, found = 0;

	if (!find_code(f, &code))
		return false;
	size = (size_t)min_u64(code.p_filesz, CODE_MAX);
	if (elf_file_read(f, code.p_offset, size, CODE_MAX, &bytes) < 0)
		return false;
	for (size_t i = 0; i + sizeof(begins) <= size; i++)
		found += memcmp(bytes + i, begins, sizeof(begins)) == 0;
	free(bytes);
	/* At least one in 1,024 bytes: an average function has some hundred bytes. */
	return found > size / 1024;
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
	GElf_Phdr header;

	build_id_read(f, &id);
	if (id.is_real)
		build_id_hex(&id, ret->build_id);
	ret->has_cfi = has_section(f, ".eh_frame") || has_section(f, ".debug_frame") ||
		       elf_file_phdr(f, PT_GNU_EH_FRAME, &header);
	ret->has_symbols = has_section(f, ".symtab") || has_section(f, ".gnu_debugdata");
	ret->has_go_table = (!ret->has_cfi || !ret->has_symbols) && has_go_table(f);
	ret->has_cfi = ret->has_cfi || (ret->has_go_table && GOPCLNTAB_HAS_ROWS);
	ret->has_debug_info = has_section(f, ".debug_info");
	ret->leaks = leaks_of(leak_runtime_find(f));
	ret->keeps_frame_pointers = !ret->has_cfi && keeps_frame_pointers(f);
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
