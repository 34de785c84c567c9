/*
 * A process's files: are stacks found through them, do functions have names,
 * and what is to be uploaded to Sentry; and code that is in no file.
 *
 * They are read as profctl's user, with no sandbox.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/doctor.h"
#include "daemon/open.h"
#include "daemon/process.h"
#include "daemon/rooted.h"
#include "lib/base/buf.h"
#include "lib/base/procfs.h"
#include "lib/unwind/build_id.h"
#include "lib/unwind/maps.h"
#include "lib/unwind/unwind.h"

#define MAPS_TEXT_MAX (16u << 20)

/* Trampolines of libffi and the like are no program of their own. */
#define JIT_BYTES_MIN 65536

/* What is looked through for the beginnings of functions. */
#define CODE_MAX (1u << 20)

/* sentry-cli's line is for a terminal; a directory can be given, too. */
#define UPLOADS_MAX 16

/* What one file of a process has. */
struct file {
	const char *path; /* as the process names it */
	struct build_id id;
	bool is_elf;
	bool has_cfi;
	bool has_frame_pointers; /* known without CFI only */
	bool has_symbols;	 /* a symbol table, its own or packed */
	bool has_debug_info;
	char debug[PATH_MAX]; /* its separate debug file; "": none */
};

struct look {
	struct doctor *d;
	struct buf text;
	struct maps maps;
	size_t files, stripped;
	struct buf uploads; /* paths, with a blank before each */
	size_t n_uploads;
};

static bool has_section(const struct elf_file *f, const char *name)
{
	GElf_Shdr header;

	return elf_file_section(f, name, &header) != NULL &&
	       header.sh_type != SHT_NOBITS && header.sh_size > 0;
}

static bool find_segment(const struct elf_file *f, uint32_t type,
			 uint32_t flags, GElf_Phdr *ret)
{
	for (size_t i = 0; i < f->n_phdrs; i++)
		if (gelf_getphdr(f->elf, (int)i, ret) != NULL &&
		    ret->p_type == type && (ret->p_flags & flags) == flags)
			return true;
	return false;
}

/* push %rbp; mov %rsp,%rbp: so begins a function that keeps one. */
static bool keeps_frame_pointers(const struct elf_file *f)
{
	static const uint8_t begins[] = {0x55, 0x48, 0x89, 0xe5};
	GElf_Phdr code;
	uint8_t *bytes;
	size_t size, found = 0;

	if (!find_segment(f, PT_LOAD, PF_X, &code))
		return false;
	size = (size_t)min_u64(code.p_filesz, CODE_MAX);
	if (elf_file_read(f, code.p_offset, size, CODE_MAX, &bytes) < 0)
		return false;
	for (size_t i = 0; i + sizeof(begins) <= size; i++)
		found += memcmp(bytes + i, begins, sizeof(begins)) == 0;
	free(bytes);
	/* A function has some hundred bytes. */
	return found > size / 1024;
}

static void find_debug_file(const struct look *k, struct file *ret)
{
	char hex[BUILD_ID_HEX_SIZE];
	int fd;

	if (!ret->id.is_real)
		return;
	build_id_hex(&ret->id, hex);
	if (strlen(hex) < 4 || rooted_debug(k->d->pid, hex, &fd) < 0)
		return;
	(void)!procfs_link(procfs_own_fd(fd).text, ret->debug,
			   sizeof(ret->debug));
	close_fd(&fd);
}

static void read_file(const struct look *k, int fd, struct file *ret)
{
	struct elf_file f;
	GElf_Phdr header;

	if (elf_file_open(&f, fd) < 0)
		return;
	ret->is_elf = true;
	build_id_read(&f, &ret->id);
	ret->has_cfi = has_section(&f, ".eh_frame") ||
		       has_section(&f, ".debug_frame") ||
		       find_segment(&f, PT_GNU_EH_FRAME, 0, &header);
	ret->has_symbols =
		has_section(&f, ".symtab") || has_section(&f, ".gnu_debugdata");
	ret->has_debug_info = has_section(&f, ".debug_info");
	if (!ret->has_cfi)
		ret->has_frame_pointers = keeps_frame_pointers(&f);
	elf_file_close(&f);
	find_debug_file(k, ret);
}

static void add_upload(struct look *k, const char *path)
{
	k->n_uploads++;
	if (k->n_uploads <= UPLOADS_MAX)
		(void)!buf_printf(&k->uploads, " %s", path);
}

static void say_file(struct look *k, const struct file *f, bool is_program)
{
	char id[BUILD_ID_HEX_SIZE] = "none";

	if (f->id.is_real)
		build_id_hex(&f->id, id);
	if (!f->has_cfi)
		doctor_say(k->d, FINDING_WARNING, "stacks",
			   "%s has no call frame information: stacks through "
			   "it %s (compile it with "
			   "-fasynchronous-unwind-tables)",
			   f->path,
			   f->has_frame_pointers
				   ? "are found by its frame pointers"
				   : "end there: it keeps no frame pointers "
				     "either");
	if (!f->id.is_real)
		doctor_say(k->d, FINDING_WARNING, "build-id",
			   "%s has none, so its debug files are known by a "
			   "checksum of its code only (link it with "
			   "-Wl,--build-id)",
			   f->path);
	if (!f->has_symbols && f->debug[0] == '\0')
		k->stripped++;
	if (is_program && !f->has_symbols && f->debug[0] == '\0')
		doctor_say(k->d, FINDING_WARNING, "names",
			   "%s is stripped, and there is no debug file of "
			   "build-id %s: functions that it does not export "
			   "have no names here (install its debug package, or "
			   "upload its debug file to Sentry)",
			   f->path, id);
	else if (is_program || f->debug[0] != '\0' || f->has_debug_info)
		doctor_say(k->d, FINDING_OK, "names", "%s (build-id %s): %s%s",
			   f->path, id,
			   f->debug[0] != '\0' ? "debug file "
			   : f->has_debug_info ? "debug information"
			   : f->has_symbols    ? "symbols, and no lines"
					       : "exported names",
			   f->debug);
	if (f->debug[0] != '\0')
		add_upload(k, f->debug);
	if (f->has_debug_info || (is_program && f->has_symbols))
		add_upload(k, f->path);
}

/* The first mapping of each file. */
static bool is_first(const struct maps *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (m->v[i].inode == m->v[n].inode &&
		    m->v[i].device == m->v[n].device)
			return false;
	return true;
}

static void look_at_file(struct look *k, const struct map *m, bool is_program)
{
	const struct open_order order = {
		.pid = k->d->pid,
		.kind = WANT_IMAGE,
		.start = m->start,
		.end = m->end,
	};
	static struct file f;
	int fd, r;

	f = (struct file){.path = m->path};
	k->files++;
	r = open_for(&order, &fd);
	if (r < 0) {
		doctor_say(k->d, FINDING_WARNING, "file", "%s: %s", m->path,
			   strerror(-r));
		return;
	}
	read_file(k, fd, &f);
	close_fd(&fd);
	if (f.is_elf)
		say_file(k, &f, is_program);
	else
		doctor_say(k->d, FINDING_WARNING, "file",
			   "%s is mapped as code, and is no 64-bit ELF file",
			   m->path);
}

/* What the link /proc/PID/exe points to. */
static void program_path(int32_t pid, char ret[PATH_MAX])
{
	(void)!procfs_link(procfs_path(pid, "exe").text, ret, PATH_MAX);
}

static void say_uploads(struct look *k)
{
	if (k->n_uploads == 0)
		return;
	doctor_say(k->d, FINDING_OK, "upload",
		   "sentry-cli debug-files upload --org ORG --project "
		   "PROJECT%s%s",
		   buf_string(&k->uploads),
		   k->n_uploads > UPLOADS_MAX ? " ..." : "");
}

/* Of code that a runtime makes, a perf map is all that has names. */
static void check_jit(struct look *k, uint64_t bytes)
{
	char name[PROCESS_NAME_SIZE];
	int fd;

	if (bytes < JIT_BYTES_MIN)
		return;
	process_name(k->d->pid, name);
	if (rooted_perf_map(k->d->pid, &fd) == 0) {
		doctor_say(k->d, FINDING_OK, "run-time code",
			   "%s has %llu KB of it, and a perf map", name,
			   (unsigned long long)(bytes / 1024));
		close_fd(&fd);
		return;
	}
	doctor_say(k->d, FINDING_WARNING, "run-time code",
		   "%s has %llu KB of it, and no /tmp/perf-PID.map: it has no "
		   "names (node --perf-basic-prof "
		   "--interpreted-frames-native-stack, python3.12 -X perf, "
		   "DOTNET_PerfMapEnabled=1, java -XX:+PreserveFramePointer "
		   "with jcmd PID Compiler.perfmap)",
		   name, (unsigned long long)(bytes / 1024));
}

/* Memory, shared or not, that has a name in maps only. */
static bool is_run_time(const struct map *m)
{
	return m->path[0] == '\0' || strncmp(m->path, "[anon", 5) == 0 ||
	       strncmp(m->path, "/memfd:", 7) == 0 ||
	       strncmp(m->path, "/dev/zero", 9) == 0;
}

static void look_at_all(struct look *k)
{
	char program[PATH_MAX];
	uint64_t jit_bytes = 0;

	program_path(k->d->pid, program);
	for (size_t i = 0; i < k->maps.n; i++) {
		const struct map *m = &k->maps.v[i];

		if (is_run_time(m))
			jit_bytes += m->end - m->start;
		else if (m->path[0] != '/')
			continue; /* the vDSO */
		else if (is_first(&k->maps, i))
			look_at_file(k, m, strcmp(m->path, program) == 0);
	}
	doctor_say(k->d, FINDING_OK, "files",
		   "%zu with code, %zu of them stripped: of these exported "
		   "functions have names, others where Sentry has their debug "
		   "files",
		   k->files, k->stripped);
	say_uploads(k);
	check_jit(k, jit_bytes);
}

static int read_maps(struct look *k)
{
	int fd = open(procfs_path(k->d->pid, "task/%d/maps",
				  process_living_thread(k->d->pid))
			      .text,
		      O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = buf_read_fd(&k->text, fd);
	close_fd(&fd);
	if (r == 0)
		r = maps_parse(&k->maps, buf_string(&k->text), k->text.len,
			       UNWIND_MAPS_MAX);
	return r;
}

void doctor_files(struct doctor *d)
{
	struct look k = {.d = d};
	int r;

	buf_init(&k.text, MAPS_TEXT_MAX);
	buf_init(&k.uploads, UPLOADS_MAX * PATH_MAX);
	r = read_maps(&k);
	if (r == 0) {
		look_at_all(&k);
		maps_fini(&k.maps);
	} else {
		doctor_say(d, FINDING_FAULT, "files",
			   "its mappings cannot be read: %s", strerror(-r));
	}
	buf_fini(&k.uploads);
	buf_fini(&k.text);
}
