#include "lib/unwind/image/image.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/siphash.h"
#include "lib/unwind/cpu.h"
#include "lib/unwind/elf/gopclntab.h"

/*
 * Hashes the contents of a copy of memory. Copies are compared by this hash alone, so it has 128
 * bits.
 */
static int hash_contents(int fd, uint64_t size, uint64_t seed, uint64_t ret[2])
{
	uint8_t bytes[4096];

	ret[0] = ret[1] = 0;
	for (uint64_t pos = 0; pos < size;) {
		size_t n = (size_t)min_u64(size - pos, sizeof(bytes));
		int r = elf_file_pread(fd, bytes, n, pos);

		if (r)
			return r;
		for (uint64_t i = 0; i < 2; i++) {
			const uint64_t key[] = {seed ^ i, ret[i]};

			ret[i] = siphash((const uint8_t *)key, bytes, n);
		}
		pos += n;
	}
	ret[0] |= 1; /* not 0, which means "identified by contents" */
	return 0;
}

int image_identify(int fd, uint64_t seed, struct image_identity *ret)
{
	struct image_identity id = {0};
	struct stat st;
	int r;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -EINVAL;
	/* A memfd, or a file on a tmpfs, which may be identified by its contents, too. */
	if (fcntl(fd, F_GET_SEALS) >= 0 && st.st_size <= IMAGE_CONTENT_MAX) {
		id.file.size = (uint64_t)st.st_size;
		r = hash_contents(fd, id.file.size, seed, id.content);
		if (r)
			return r;
	} else {
		id.file = file_identity_of(&st);
	}
	*ret = id;
	return 0;
}

bool image_identity_equal(const struct image_identity *a, const struct image_identity *b)
{
	return file_identity_equal(&a->file, &b->file) && a->content[0] == b->content[0] &&
	       a->content[1] == b->content[1];
}

/* Reads the segments, and the address range that they span. */
static int read_segments(struct image *i, const struct elf_file *f)
{
	uint64_t end = 0;
	GElf_Phdr p;

	i->segments = calloc(f->n_phdrs + 1, sizeof(*i->segments));
	if (!i->segments)
		return -ENOMEM;
	for (size_t k = 0; k < f->n_phdrs; k++) {
		uint64_t p_end;

		if (!gelf_getphdr(f->elf, (int)k, &p))
			continue;
		i->has_interpreter |= p.p_type == PT_INTERP;
		if (p.p_type != PT_LOAD || __builtin_add_overflow(p.p_vaddr, p.p_memsz, &p_end))
			continue;
		if (i->n_segments == 0)
			i->base = p.p_vaddr;
		end = max_u64(end, p_end);
		i->segments[i->n_segments++] = (struct image_segment){
			.offset = p.p_offset,
			.vaddr = p.p_vaddr,
			.file_size = p.p_filesz,
			.exec = (p.p_flags & PF_X) != 0,
		};
	}
	i->size = end > i->base ? end - i->base : 0;
	return 0;
}

/*
 * Hashes what tells a file without a build-id from another one of the same size in its place: the
 * ELF header, the section headers and the modification time.
 */
static uint64_t hash_headers(const struct elf_file *f, uint64_t seed)
{
	uint64_t key[] = {seed, 0};
	uint8_t *headers;
	struct stat st;
	size_t n;

	if (fstat(f->fd, &st) == 0) {
		const uint64_t modified[] = {(uint64_t)st.st_mtim.tv_sec,
					     (uint64_t)st.st_mtim.tv_nsec};

		key[1] = siphash((const uint8_t *)key, modified, sizeof(modified));
	}
	key[1] = siphash((const uint8_t *)key, &f->ehdr, sizeof(f->ehdr));
	if (elf_getshdrnum(f->elf, &n) || n == 0 ||
	    elf_file_read(f, f->ehdr.e_shoff, n * sizeof(Elf64_Shdr),
			  ELF_SECTIONS_MAX * sizeof(Elf64_Shdr), &headers))
		return key[1];
	key[1] = siphash((const uint8_t *)key, headers, n * sizeof(Elf64_Shdr));
	free(headers);
	return key[1];
}

bool image_matches(const struct image *i, int fd)
{
	struct build_id id;
	struct elf_file f;
	bool matches;

	if (!i->is_elf || elf_file_open(&f, fd))
		return false;
	build_id_read(&f, &id);
	matches = i->id.is_real || id.is_real ? build_id_equal(&i->id, &id)
					      : hash_headers(&f, i->answers.seed) == i->headers;
	elf_file_close(&f);
	return matches;
}

int image_new(int fd, const struct image_identity *identity, uint64_t seed, struct image **ret)
{
	struct image *i = calloc(1, sizeof(*i));
	struct elf_file f;
	GElf_Shdr info;
	int r;

	if (!i)
		return -ENOMEM;
	i->identity = *identity;
	i->page_size = (uint64_t)getpagesize();
	i->lines_file.fd = -1;
	symbols_init(&i->symbols);
	table_init(&i->answers, seed);
	if (elf_file_open(&f, fd) == 0) {
		r = read_segments(i, &f);
		if (r == 0)
			build_id_read(&f, &i->id);
		fingerprint_read(&f, &i->id, &i->fingerprint);
		if (!i->id.is_real)
			i->headers = hash_headers(&f, seed);
		i->has_symtab = symbols_has_symtab(&f);
		i->is_go = elf_file_section(&f, ".go.buildinfo", &info) != NULL;
		i->has_debug_info =
			elf_file_section(&f, ".debug_info", &info) && info.sh_type != SHT_NOBITS;
		plt_find(&i->plt, &f);
		i->is_elf = i->n_segments > 0 && i->size > 0 && f.ehdr.e_machine == CPU_ELF_MACHINE;
		elf_file_close(&f);
		if (r) {
			image_free(i);
			return r;
		}
	}
	*ret = i;
	return 0;
}

void image_free(struct image *i)
{
	if (!i)
		return;
	image_drop(i);
	image_close_lines_file(i);
	free(i->segments);
	free(i);
}

/* Reads Go's table, unless there is .debug_frame, which says the same. */
static int load_go(struct image *i, const struct elf_file *f)
{
	struct gopclntab t;
	GElf_Shdr info;
	int r;

	if (!GOPCLNTAB_HAS_ROWS || elf_file_section(f, ".debug_frame", &info))
		return 0;
	r = gopclntab_open(f, &t);
	if (r)
		return r == -ENOMEM ? r : 0;
	r = gopclntab_rows(&t, i->base, &i->go);
	gopclntab_close(&t);
	return r;
}

int image_load_rows(struct image *i, int fd)
{
	struct elf_file f;
	int r = 0;

	if (i->cfi_tried || !i->is_elf)
		return 0;
	if (elf_file_open(&f, fd) == 0) {
		if (i->is_go)
			r = load_go(i, &f);
		if (r == 0)
			r = cfi_open(&f, i->base, &i->cfi);
		if (r)
			rows_fini(&i->go);
		elf_file_close(&f);
	}
	i->cfi_tried = r == 0;
	return r;
}

const struct rows *image_rows(struct image *i, uint64_t vaddr)
{
	const struct rows *rows = cfi_rows(i->cfi, vaddr);

	/* C functions in a Go program have CFI. */
	return i->go.n > 0 && rows_find(rows, vaddr)->cfa == RULE_CFA_NONE ? &i->go : rows;
}

static void find_switches(struct image *i)
{
	static const struct {
		const char *name;
		enum image_switch_kind kind;
	} functions[IMAGE_SWITCHES] = {
		{"runtime.mcall", IMAGE_SWITCH_ROOT},
		{"runtime.systemstack", IMAGE_SWITCH_UNKNOWN},
		{"runtime.morestack", IMAGE_SWITCH_UNKNOWN},
		{"runtime.asmcgocall", IMAGE_SWITCH_UNKNOWN},
		{"runtime.nanotime1", IMAGE_SWITCH_FRAMED},
		{"runtime.walltime", IMAGE_SWITCH_FRAMED},
		{"time.now", IMAGE_SWITCH_FRAMED},
	};

	for (size_t k = 0; k < IMAGE_SWITCHES; k++) {
		struct image_switch *s = &i->switches[k];

		s->kind = functions[k].kind;
		if (!symbols_range(&i->symbols, functions[k].name, &s->start, &s->end))
			s->start = s->end = 0;
	}
}

const struct image_switch *image_switch_at(const struct image *i, uint64_t vaddr)
{
	for (size_t k = 0; i->is_go && k < IMAGE_SWITCHES; k++)
		if (vaddr >= i->switches[k].start && vaddr < i->switches[k].end)
			return &i->switches[k];
	return NULL;
}

static uint64_t next_start(const void *ctx, uint64_t vaddr)
{
	return cfi_next_start(ctx, vaddr);
}

int image_load_symbols(struct image *i, int fd, int debug_fd)
{
	struct elf_file f;
	struct elf_file debug;
	bool has_debug;
	int r = 0;

	if (i->symbols_tried || !i->is_elf)
		return 0;
	r = image_load_rows(i, fd);
	if (r)
		return r;
	if (elf_file_open(&f, fd) == 0) {
		has_debug = debug_fd >= 0 && elf_file_open(&debug, debug_fd) == 0;
		r = symbols_load(&f, has_debug ? &debug : NULL, i->base, &i->symbols);
		if (has_debug)
			elf_file_close(&debug);
		elf_file_close(&f);
	}
	if (r == 0)
		symbols_bound(&i->symbols, next_start, i->cfi);
	i->symbols_tried = r == 0;
	if (r == 0 && i->is_go)
		find_switches(i);
	return r;
}

int image_load_plt(struct image *i, int fd)
{
	struct elf_file f;
	int r;

	if (!i->is_elf || elf_file_open(&f, fd)) {
		i->plt.is_loaded = true;
		return 0;
	}
	r = plt_load(&i->plt, &f, &i->symbols);
	elf_file_close(&f);
	return r;
}

int image_load_lines(struct image *i, int fd, clock_fn cpu_ns)
{
	struct elf_file f;
	int r = 0;

	if (i->lines_tried || !i->is_elf)
		return 0;
	if (fd >= 0 && elf_file_open(&f, fd) == 0) {
		r = lines_open(&f, cpu_ns, &i->lines);
		elf_file_close(&f);
	}
	i->lines_tried = r == 0;
	return r;
}

void image_drop(struct image *i)
{
	lines_free(i->lines);
	i->lines = NULL;
	i->lines_tried = false;
	i->lines_file.sought = i->lines_file.fd >= 0;
	cfi_free(i->cfi);
	i->cfi = NULL;
	rows_fini(&i->go);
	symbols_fini(&i->symbols);
	plt_drop(&i->plt);
	table_fini(&i->answers);
	i->cfi_tried = false;
	i->symbols_tried = false;
}

void image_search_debug_file_again(struct image *i)
{
	symbols_fini(&i->symbols);
	i->symbols_tried = false;
	if (!i->lines && i->lines_file.fd < 0) {
		i->lines_tried = false;
		i->lines_file.sought = false;
	}
	i->debug_file_due = false;
}

void image_close_lines_file(struct image *i)
{
	close_fd(&i->lines_file.fd);
}

size_t image_bytes(const struct image *i)
{
	/* A slot of a table has a key and a value. */
	return cfi_bytes(i->cfi) + i->go.bytes + i->symbols.bytes + i->plt.bytes +
	       (i->lines ? lines_bytes(i->lines) : 0) + i->answers.cap * 2 * sizeof(uint64_t);
}

/* Returns addr, rounded down to the start of its page. */
static uint64_t page_of(const struct image *i, uint64_t addr)
{
	return addr & -i->page_size;
}

/*
 * Returns the segment of which a mapping at this offset is, the first page or a later one; NULL if
 * there is none. The kernel maps from the start of the page in which the segment begins, so two
 * segments can have a page of the file in common; the one that begins there comes first.
 */
static const struct image_segment *segment_at(const struct image *i, uint64_t map_offset, bool exec)
{
	const struct image_segment *found = NULL;

	for (size_t k = 0; i->is_elf && k < i->n_segments; k++) {
		const struct image_segment *s = &i->segments[k];
		const uint64_t first = page_of(i, s->offset);

		if (s->exec != exec || map_offset < first ||
		    (map_offset >= s->offset && map_offset - s->offset >= s->file_size))
			continue;
		if (map_offset == first)
			return s;
		if (!found)
			found = s;
	}
	return found;
}

bool image_bias(const struct image *i, uint64_t map_start, uint64_t map_offset, bool exec,
		uint64_t *ret)
{
	const struct image_segment *s = segment_at(i, map_offset, exec);

	if (s)
		*ret = map_start - map_offset + s->offset - s->vaddr;
	return s != NULL;
}

bool image_has_code(const struct image *i, uint64_t bias, uint64_t start, uint64_t end)
{
	for (size_t k = 0; i->is_elf && k < i->n_segments; k++) {
		const struct image_segment *s = &i->segments[k];
		const uint64_t at = page_of(i, s->vaddr + bias);
		uint64_t size;

		/* A segment without bytes in the file has no code to look up. */
		if (!s->exec || s->file_size == 0 ||
		    __builtin_add_overflow(s->vaddr + bias - at, s->file_size, &size) ||
		    size > UINT64_MAX - at - i->page_size)
			continue;
		if (start >= at && start < end && end - at <= align_up(size, i->page_size))
			return true;
	}
	return false;
}

bool image_file_offset(const struct image *i, uint64_t vaddr, uint64_t *ret_offset,
		       uint64_t *ret_left)
{
	for (size_t k = 0; k < i->n_segments; k++) {
		const struct image_segment *s = &i->segments[k];

		if (vaddr < s->vaddr || vaddr - s->vaddr >= s->file_size ||
		    s->offset > UINT64_MAX - s->file_size)
			continue;
		*ret_offset = s->offset + (vaddr - s->vaddr);
		*ret_left = s->file_size - (vaddr - s->vaddr);
		return true;
	}
	return false;
}
