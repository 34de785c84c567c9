#include "tests/unit/aggregate/fake_unwind.h"

#include <stdio.h>
#include <string.h>

int unwind_image_at(struct unwind_space *s, uint64_t addr, struct unwind_image *ret)
{
	for (size_t i = 0; i < s->n_images; i++) {
		const struct fake_image *image = &s->images[i];

		if (addr < image->start || addr >= image->end)
			continue;
		*ret = image->image;
		return 0;
	}
	return -ENOENT;
}

int unwind_symbol_at(struct unwind_space *s, uint64_t addr, const char **ret_name,
		     uint64_t *ret_offset)
{
	s->lookups++;
	s->in_use = true;
	for (size_t i = 0; i < s->n_symbols; i++) {
		const struct fake_symbol *symbol = &s->symbols[i];

		if (addr < symbol->start || addr >= symbol->end)
			continue;
		*ret_name = symbol->name;
		*ret_offset = addr - symbol->start;
		return 0;
	}
	return -ENOENT;
}

int unwind_function_at(struct unwind_space *s, uint64_t addr, uint64_t *ret_start)
{
	for (size_t i = 0; i < s->n_functions; i++) {
		if (addr < s->functions[i].start || addr >= s->functions[i].end)
			continue;
		*ret_start = s->functions[i].start;
		return 0;
	}
	return -ENOENT;
}

uint64_t unwind_after_call(uint64_t addr)
{
	return addr + 1;
}

/* Demangles "_Zabc" and "_Rabc" to "abc", or with parameters to "abc()". */
bool unwind_demangle(const char *raw, bool with_parameters, char *out, size_t size)
{
	/* Also knows one name in Rust's legacy mangling, whose hash is not part of the name. */
	if (strcmp(raw, "_ZN$LT$alloc..X$GT$17h0123456789abcdefE.llvm.1") == 0)
		raw = "_R<alloc::X>::run";
	if (strncmp(raw, "_Z", 2) != 0 && strncmp(raw, "_R", 2) != 0)
		return false;
	(void)snprintf(out, size, "%s%s", raw + 2, with_parameters ? "()" : "");
	return true;
}

int unwind_lines_at(struct unwind_space *s, uint64_t addr, struct unwind_line ret[UNWIND_LINES_MAX],
		    size_t *ret_n)
{
	s->in_use = true;
	for (size_t i = 0; i < s->n_lines; i++) {
		const struct fake_lines *l = &s->lines[i];

		if (addr < l->start || addr >= l->end)
			continue;
		memcpy(ret, l->lines, l->n * sizeof(ret[0]));
		*ret_n = l->n;
		return 0;
	}
	return -ENOENT;
}

void unwind_names_done(struct unwind_space *s)
{
	s->in_use = false;
}
