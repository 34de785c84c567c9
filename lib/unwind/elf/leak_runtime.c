#include "lib/unwind/elf/leak_runtime.h"

#include <stdlib.h>
#include <string.h>

/*
 * Bytes of a section that are searched. The string table of Chromium with all symbols has about 60
 * MB, its .rodata less.
 */
#define SEARCHED_MAX (128u << 20)
/* Bytes that are read at a time: a number of whole symbols. */
#define BLOCK_BYTES (8192 * sizeof(Elf64_Sym))
/* Places of a name in a string table, all but one of them ends of longer names. */
#define PLACES_MAX 4
/* Bytes of .dynamic: a program with a thousand libraries has 16 KB. */
#define DYNAMIC_MAX (64u << 10)

/*
 * The message by which LeakSanitizer ends a traced process, since gcc 4.9 and LLVM 3.2. It is in
 * two parts here, so that this file's own object code is not taken for LeakSanitizer.
 */
static const char message_begin[] = "LeakSanitizer has encountered";
static const char message_end[] = " a fatal error";

static bool find_section(const struct elf_file *f, const char *name, GElf_Shdr *ret)
{
	return elf_file_section(f, name, ret) != NULL && ret->sh_type != SHT_NOBITS &&
	       (ret->sh_flags & SHF_COMPRESSED) == 0 && ret->sh_size > 0;
}

/* Finds the string table of a section of symbols, or of .dynamic. */
static bool find_strings(const struct elf_file *f, const GElf_Shdr *of, GElf_Shdr *ret)
{
	Elf_Scn *scn = elf_getscn(f->elf, of->sh_link);

	return scn != NULL && gelf_getshdr(scn, ret) != NULL && ret->sh_type == SHT_STRTAB;
}

/*
 * Finds the first place of n bytes in the section, at the offset from or behind it. n is small.
 * Returns false if there is none, or the section cannot be read.
 */
static bool find_bytes(const struct elf_file *f, const GElf_Shdr *section, uint64_t from,
		       const char *bytes, size_t n, uint64_t *ret)
{
	const uint64_t size = min_u64(section->sh_size, SEARCHED_MAX);

	while (from < size && size - from >= n) {
		const size_t got = (size_t)min_u64(size - from, BLOCK_BYTES);
		const uint8_t *found;
		uint8_t *block;
		uint64_t at;

		if (__builtin_add_overflow(section->sh_offset, from, &at) ||
		    elf_file_read(f, at, got, BLOCK_BYTES, &block) < 0)
			return false;
		found = memmem(block, got, bytes, n);
		if (found != NULL)
			*ret = from + (uint64_t)(found - block);
		free(block);
		if (found != NULL)
			return true;
		/* The bytes may begin in this block and end in the next. */
		from += got - n + 1;
	}
	return false;
}

/* Returns true if a symbol of the table has its name at this offset of the string table. */
static bool is_name_used(const struct elf_file *f, const GElf_Shdr *table, uint64_t name)
{
	const uint64_t size = min_u64(table->sh_size, SEARCHED_MAX);
	bool is_used = false;

	for (uint64_t from = 0; from < size && !is_used;) {
		const size_t got = (size_t)min_u64(size - from, BLOCK_BYTES);
		uint8_t *block;
		uint64_t at;

		if (__builtin_add_overflow(table->sh_offset, from, &at) ||
		    elf_file_read(f, at, got, BLOCK_BYTES, &block) < 0)
			return false;
		for (size_t i = 0; i + sizeof(Elf64_Sym) <= got && !is_used;
		     i += sizeof(Elf64_Sym)) {
			Elf64_Sym sym;

			memcpy(&sym, block + i, sizeof(sym));
			is_used = sym.st_name == name;
		}
		free(block);
		from += got;
	}
	return is_used;
}

static bool has_symbol(const struct elf_file *f, const char *table_name, const char *name)
{
	GElf_Shdr table, strings;
	uint64_t at = 0;

	if (!find_section(f, table_name, &table) || table.sh_entsize != sizeof(Elf64_Sym) ||
	    !find_strings(f, &table, &strings))
		return false;
	/* The string table is searched first: it has the name in few files. */
	for (int i = 0; i < PLACES_MAX; i++) {
		if (!find_bytes(f, &strings, at, name, strlen(name) + 1, &at))
			return false;
		if (is_name_used(f, &table, at))
			return true;
		at++;
	}
	return false;
}

static enum leak_runtime runtime_of_library(const char *name)
{
	static const struct {
		const char *begin;
		enum leak_runtime runtime;
	} v[] = {
		{"libasan.so", LEAK_RUNTIME_ASAN},
		{"libclang_rt.asan", LEAK_RUNTIME_ASAN},
		{"liblsan.so", LEAK_RUNTIME_LSAN},
		{"libclang_rt.lsan", LEAK_RUNTIME_LSAN},
	};

	for (size_t i = 0; i < array_size(v); i++)
		if (strncmp(name, v[i].begin, strlen(v[i].begin)) == 0)
			return v[i].runtime;
	return LEAK_RUNTIME_NONE;
}

static enum leak_runtime find_needed(const struct elf_file *f)
{
	enum leak_runtime found = LEAK_RUNTIME_NONE;
	GElf_Shdr dynamic, strings;
	uint8_t *bytes;
	size_t size;

	if (!find_section(f, ".dynamic", &dynamic) || !find_strings(f, &dynamic, &strings))
		return LEAK_RUNTIME_NONE;
	size = (size_t)min_u64(dynamic.sh_size, DYNAMIC_MAX);
	if (elf_file_read(f, dynamic.sh_offset, size, DYNAMIC_MAX, &bytes) < 0)
		return LEAK_RUNTIME_NONE;
	for (size_t i = 0; i + sizeof(Elf64_Dyn) <= size && found == LEAK_RUNTIME_NONE;
	     i += sizeof(Elf64_Dyn)) {
		char name[32] = ""; /* the beginning, longer than each that is searched */
		Elf64_Dyn entry;
		uint64_t at;

		memcpy(&entry, bytes + i, sizeof(entry));
		if (entry.d_tag == DT_NEEDED && entry.d_un.d_val < strings.sh_size &&
		    !__builtin_add_overflow(strings.sh_offset, entry.d_un.d_val, &at) &&
		    elf_file_pread(
			    f->fd, name,
			    (size_t)min_u64(sizeof(name) - 1, strings.sh_size - entry.d_un.d_val),
			    at) == 0)
			found = runtime_of_library(name);
	}
	free(bytes);
	return found;
}

/* Returns true if the message is in the section. */
static bool has_message(const struct elf_file *f, const GElf_Shdr *section)
{
	const size_t n = strlen(message_begin), rest = strlen(message_end);
	uint64_t at = 0;

	for (int i = 0; i < PLACES_MAX; i++) {
		char text[sizeof(message_end)];

		if (!find_bytes(f, section, at, message_begin, n, &at))
			return false;
		if (elf_file_pread(f->fd, text, rest, section->sh_offset + at + n) == 0 &&
		    memcmp(text, message_end, rest) == 0)
			return true;
		at++;
	}
	return false;
}

static enum leak_runtime find_message(const struct elf_file *f)
{
	static const char variable[] = "\0ASAN_OPTIONS";
	GElf_Shdr section;
	uint64_t at;

	if (find_section(f, ".symtab", &section) || !find_section(f, ".rodata", &section) ||
	    !has_message(f, &section))
		return LEAK_RUNTIME_NONE;
	return find_bytes(f, &section, 0, variable, sizeof(variable), &at) ? LEAK_RUNTIME_ASAN
									   : LEAK_RUNTIME_LSAN;
}

enum leak_runtime leak_runtime_find(const struct elf_file *f)
{
	static const char *const tables[] = {".dynsym", ".symtab"};
	enum leak_runtime found = find_needed(f);

	for (size_t i = 0; i < array_size(tables) && found == LEAK_RUNTIME_NONE; i++)
		if (has_symbol(f, tables[i], "__asan_init"))
			found = LEAK_RUNTIME_ASAN;
		else if (has_symbol(f, tables[i], "__lsan_init"))
			found = LEAK_RUNTIME_LSAN;
	return found != LEAK_RUNTIME_NONE ? found : find_message(f);
}
