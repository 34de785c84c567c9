/*
 * Checks the files with code of a process: whether stacks can be unwound through them,
 * whether functions have names, what to upload to Sentry. And code that is in no file.
 *
 * The files are opened with the rights of the user who runs sentry-profctl, and parsed by
 * a sentry-profd-unwind in its sandbox (common/file_reader.h).
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "daemon/ctl/common/file_reader.h"
#include "daemon/ctl/doctor/debian_package.h"
#include "daemon/ctl/doctor/doctor_checks.h"
#include "daemon/msg/file_request.h"
#include "daemon/process/leak_options.h"
#include "daemon/process/namespace.h"
#include "daemon/process/open.h"
#include "daemon/process/process.h"
#include "daemon/process/threads.h"
#include "lib/base/buf.h"
#include "lib/base/procfs.h"
#include "lib/unwind/image/debug_file.h"
#include "lib/unwind/space/maps.h"
#include "lib/unwind/unwind.h"

#define MAPS_TEXT_MAX (16u << 20)

#define CRC_BLOCK 65536

/* Less is not reported: trampolines of libffi, for example. */
#define JIT_BYTES_MIN 65536

/* Files in the command line for sentry-cli; more would not be readable. */
#define UPLOADS_MAX 16

/* Stripped files that are named one by one; more would not be readable. */
#define STRIPPED_MAX 32

/* One file of the process. */
struct file {
	const char *path; /* as in /proc/PID/maps */
	struct msg_file_seen seen;
	char debug[PATH_MAX]; /* path of its separate debug file; "": none */
};

/* A file without a symbol table, for which no debug file was found. */
struct stripped {
	char path[PATH_MAX];
	char build_id[MSG_NAME_MAX]; /* "": none */
	bool is_program;
};

struct file_checks {
	struct doctor *d;
	struct file_reader reader;
	struct buf text;
	struct maps maps;
	size_t files, n_stripped;
	struct stripped stripped[STRIPPED_MAX]; /* the first n_stripped, and the program */
	enum file_leaks leaks;			/* of the first file that has any */
	char leaks_path[PATH_MAX];
	struct buf uploads; /* paths, each after a space */
	size_t n_uploads;
};

/* Opens the debug file of this name, which the unwind process has read from the file of m. */
static bool open_debug(const struct file_checks *k, const struct map *m, enum file_kind kind,
		       const char *name, int *ret_fd)
{
	struct msg_file_request request = {.kind = kind, .start = m->start, .end = m->end};
	struct open_order order = {.kind = kind, .start = m->start, .end = m->end};

	(void)snprintf(request.name, sizeof(request.name), "%s", name);
	(void)snprintf(order.name, sizeof(order.name), "%s", name);
	return file_request_check(&request) == FILE_REQUEST_VALID &&
	       open_now(k->d->pid, &order, ret_fd) == 0;
}

/*
 * Returns true if unwind would use this file, found by .gnu_debuglink, which gives the checksum. As
 * in lib/unwind/image/debug_file.c, but with zlib's CRC-32, as sentry-profctl links no liblzma.
 */
static bool has_crc(int fd, uint32_t crc)
{
	uint8_t block[CRC_BLOCK];
	uLong its = crc32(0, NULL, 0);
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size > DEBUG_FILE_LINKED_MAX)
		return false;
	while ((n = read(fd, block, sizeof(block))) > 0)
		its = crc32(its, block, (uInt)n);
	return n == 0 && its == crc;
}

static void find_debug_file(const struct file_checks *k, const struct map *m, struct file *ret)
{
	bool has_id;
	int fd;

	has_id = open_debug(k, m, FILE_KIND_DEBUG, ret->seen.build_id, &fd);
	if (!has_id && !open_debug(k, m, FILE_KIND_DEBUG_LINK, ret->seen.debug_link, &fd))
		return;
	(void)!procfs_link(procfs_own_fd(fd).text, ret->debug, sizeof(ret->debug));
	if (!has_id && !has_crc(fd, ret->seen.debug_crc)) {
		doctor_say(
			k->d, FINDING_WARNING, "names",
			"%s is not used: it is of another build than %s, whose .gnu_debuglink has "
			"another checksum, or larger than 1 GB",
			ret->debug, ret->path);
		ret->debug[0] = '\0';
	}
	close_fd(&fd);
}

static void add_upload(struct file_checks *k, const char *path)
{
	k->n_uploads++;
	if (k->n_uploads <= UPLOADS_MAX)
		(void)!buf_printf(&k->uploads, " %s", path);
}

/* The program, which is the most important of them, takes the place of another one. */
static void add_stripped(struct file_checks *k, const struct file *f, bool is_program)
{
	struct stripped *s = &k->stripped[min_size(k->n_stripped, STRIPPED_MAX - 1)];

	k->n_stripped++;
	if (k->n_stripped > STRIPPED_MAX && !is_program)
		return;
	(void)snprintf(s->path, sizeof(s->path), "%s", f->path);
	(void)snprintf(s->build_id, sizeof(s->build_id), "%s", f->seen.build_id);
	s->is_program = is_program;
}

static void say_file(struct file_checks *k, const struct file *f, bool is_program)
{
	const struct msg_file_seen *seen = &f->seen;
	const char *id = seen->build_id[0] != '\0' ? seen->build_id : "none";
	const bool is_stripped = !seen->has_symbols && !seen->has_go_table && f->debug[0] == '\0';

	if (k->leaks == FILE_LEAKS_NONE && seen->leaks != FILE_LEAKS_NONE) {
		k->leaks = (enum file_leaks)seen->leaks;
		(void)snprintf(k->leaks_path, sizeof(k->leaks_path), "%s", f->path);
	}
	if (!seen->has_cfi)
		doctor_say(k->d, is_program ? FINDING_WARNING : FINDING_OK, "stacks",
			   "%s has no call frame information for its code: stacks through it are "
			   "found by its instructions and frame pointers, and some end there (%s)",
			   f->path,
			   seen->has_go_table ? "link it without -s and -w"
					      : "compile it with -fasynchronous-unwind-tables");
	if (seen->build_id[0] == '\0')
		doctor_say(k->d, FINDING_WARNING, "build-id",
			   "%s has none, so its debug files are identified by a "
			   "checksum of its code (link it with "
			   "-Wl,--build-id; Go: -ldflags='-B gobuildid')",
			   f->path);
	if (is_stripped)
		add_stripped(k, f, is_program);
	else if (is_program || f->debug[0] != '\0' || seen->has_debug_info)
		doctor_say(k->d, FINDING_OK, "names", "%s (build-id %s): %s%s", f->path, id,
			   f->debug[0] != '\0'	  ? "debug file "
			   : seen->has_debug_info ? "debug information"
			   : seen->has_symbols	  ? "symbols, but no lines"
			   : seen->has_go_table	  ? "Go's table of functions, but no lines"
						  : "exported names",
			   f->debug);
	if (f->debug[0] != '\0')
		add_upload(k, f->debug);
	if (seen->has_debug_info || (is_program && seen->has_symbols))
		add_upload(k, f->path);
}

/* Without the file nothing can be said of its names. */
static void say_unopened(struct file_checks *k, const char *path, int error)
{
	capability_set have;
	const bool may = privileges_effective(&have) == 0 &&
			 (have & CAPABILITY(CAP_CHECKPOINT_RESTORE)) != 0;

	doctor_say(k->d, FINDING_WARNING, "file",
		   "%s cannot be opened: %s; with these rights sentry-profd "
		   "reads only the part that is mapped, which has fewer names or "
		   "none%s",
		   path, strerror(error),
		   may ? ""
		       : " (CAP_CHECKPOINT_RESTORE is enough to open every "
			 "mapped file)");
}

static void say_verdict(struct file_checks *k, const struct file *f, bool is_program)
{
	const char *what = "is not an ELF file";

	switch ((enum file_verdict)f->seen.verdict) {
	case FILE_READ:
		say_file(k, f, is_program);
		return;
	case FILE_32_BIT:
		what = "is a 32-bit ELF file";
		break;
	case FILE_DAMAGED:
		what = "is a damaged ELF file, or one for another processor";
		break;
	case FILE_NO_ELF:
	case FILE_VERDICT_END:
		break;
	}
	doctor_say(k->d, FINDING_WARNING, "file",
		   "%s is mapped as code, but %s: stacks through it are "
		   "unwound by frame pointers, and its functions have no names",
		   f->path, what);
}

/* Asks unwind what the file has. Starts it, also after it has died at the file before. */
static int ask_unwind(struct file_checks *k, int fd, struct msg_file_seen *ret)
{
	int r = k->reader.page == NULL ? file_reader_start(&k->reader) : 0;

	if (r == 0)
		r = file_reader_describe(&k->reader, fd, ret);
	if (r < 0)
		file_reader_end(&k->reader);
	return r;
}

static void check_file(struct file_checks *k, const struct map *m, bool is_program)
{
	const struct open_order order = {
		.kind = FILE_KIND_IMAGE,
		.start = m->start,
		.end = m->end,
		.no_memory = true,
	};
	static struct file f;
	int fd, r;

	f = (struct file){.path = m->path};
	k->files++;
	r = open_now(k->d->pid, &order, &fd);
	if (r < 0) {
		say_unopened(k, m->path, -r);
		return;
	}
	r = ask_unwind(k, fd, &f.seen);
	close_fd(&fd);
	if (r < 0) {
		doctor_say(k->d, FINDING_WARNING, "file",
			   "%s cannot be read: sentry-profd-unwind: %s", m->path, strerror(-r));
		return;
	}
	find_debug_file(k, m, &f);
	say_verdict(k, &f, is_program);
}

/* Reads the link /proc/PID/exe. */
static void program_path(int32_t pid, char ret[PATH_MAX])
{
	(void)!procfs_link(procfs_path(pid, "exe").text, ret, PATH_MAX);
}

static void say_uploads(struct file_checks *k)
{
	if (k->n_uploads == 0)
		return;
	doctor_say(k->d, FINDING_OK, "upload",
		   "sentry-cli debug-files upload --org ORG --project "
		   "PROJECT%s%s",
		   buf_string(&k->uploads), k->n_uploads > UPLOADS_MAX ? " ..." : "");
}

/* Code that a runtime generates has names only in a perf map. */
static void check_jit(struct file_checks *k, uint64_t bytes)
{
	static const struct open_order perf_map = {.kind = FILE_KIND_PERF_MAP};
	char name[PROCESS_NAME_SIZE];
	int fd;

	if (bytes < JIT_BYTES_MIN)
		return;
	process_name(k->d->pid, name);
	if (open_now(k->d->pid, &perf_map, &fd) == 0) {
		doctor_say(k->d, FINDING_OK, "run-time code",
			   "%s has %llu KB, and a perf map with its names", name,
			   (unsigned long long)(bytes / 1024));
		close_fd(&fd);
		return;
	}
	doctor_say(k->d, FINDING_WARNING, "run-time code",
		   "%s has %llu KB, but no /tmp/perf-PID.map, so it has no "
		   "names (node --perf-basic-prof "
		   "--interpreted-frames-native-stack, python3.12 -X perf, "
		   "DOTNET_PerfMapEnabled=1, java -XX:+PreserveFramePointer "
		   "with jcmd PID Compiler.perfmap)",
		   name, (unsigned long long)(bytes / 1024));
}

/* As targets/leak_sanitizer.h of the broker decides. */
static void say_leaks(struct file_checks *k)
{
	static const struct open_order order = {.kind = FILE_KIND_LEAK_OPTIONS};
	struct leak_options options = {.asan_off = false};
	const char *variable = k->leaks == FILE_LEAKS_ASAN ? "ASAN_OPTIONS" : "LSAN_OPTIONS";
	int fd;

	if (k->leaks == FILE_LEAKS_NONE)
		return;
	if (k->d->uses_perf) {
		doctor_say(k->d, FINDING_OK, "LeakSanitizer",
			   "%s has it, and works: sampler = perf traces no process", k->leaks_path);
		return;
	}
	if (open_now(k->d->pid, &order, &fd) == 0) {
		(void)!pread(fd, &options, sizeof(options), 0);
		close_fd(&fd);
	}
	if (leak_options_are_off(&options, k->leaks))
		doctor_say(k->d, FINDING_OK, "LeakSanitizer",
			   "%s has it, and detect_leaks=0 switches it off", k->leaks_path);
	else if (k->d->attaches_anyway)
		doctor_say(k->d, FINDING_WARNING, "LeakSanitizer",
			   "%s has it: with leak_check = attach sentry-profd attaches all the "
			   "same, and the process ends with an error (start it with "
			   "%s=detect_leaks=0)",
			   k->leaks_path, variable);
	else
		doctor_say(k->d, FINDING_FAULT, "LeakSanitizer",
			   "%s has it: it does not work in a traced process, and would end it with "
			   "an error, so sentry-profd does not attach (start the process with "
			   "%s=detect_leaks=0; or leak_check = attach, --leak-check attach)",
			   k->leaks_path, variable);
}

/* True for code in anonymous or shared memory. */
static bool is_in_memory(const struct map *m)
{
	return m->path[0] == '\0' || strncmp(m->path, "[anon", 5) == 0 ||
	       strncmp(m->path, "/memfd:", 7) == 0 || strncmp(m->path, "/dev/zero", 9) == 0;
}

static bool is_same_file(const struct map *a, const struct map *b)
{
	return a->inode == b->inode && a->device == b->device;
}

/*
 * Returns a mapping of the file to which the code of m belongs; NULL: the code was generated. Code
 * in memory counts as a copy of a file's text if it is where that text may have been.
 */
static const struct map *file_of(const struct maps *maps, const struct map *m)
{
	return is_in_memory(m) ? maps_above(maps, m) : m;
}

/* True if none of the first n mappings belongs to the file. */
static bool is_new_file(const struct maps *maps, size_t n, const struct map *file)
{
	for (size_t i = 0; i < n; i++) {
		const struct map *m = &maps->v[i], *above = maps_above(maps, m);

		if (is_same_file(m, file) ||
		    (above != NULL && is_same_file(above, file) && is_in_memory(m)))
			return false;
	}
	return true;
}

/* Paths of a process with another root do not name files of this one. */
static bool has_own_root(int32_t pid)
{
	char root[PATH_MAX], own[PATH_MAX];

	return namespace_is_same(procfs_path(pid, "ns/mnt").text, "/proc/self/ns/mnt") &&
	       procfs_link(procfs_path(pid, "root").text, root, sizeof(root)) == 0 &&
	       procfs_link("/proc/self/root", own, sizeof(own)) == 0 && strcmp(root, own) == 0;
}

static void say_stripped(struct file_checks *k, const struct stripped *s, const char *package)
{
	char debug[DEBIAN_PACKAGE_NAME_SIZE], remedy[3 * DEBIAN_PACKAGE_NAME_SIZE] = "";

	if (package[0] != '\0') {
		debian_package_debug(package, debug);
		(void)snprintf(remedy, sizeof(remedy),
			       "it belongs to the package %s, whose debug files are in %s; ",
			       package, debug);
	}
	doctor_say(k->d, s->is_program ? FINDING_WARNING : FINDING_OK, "names",
		   "%s is stripped, and there is no debug file of build-id %s: functions that it "
		   "does not export have no names here (%sDEBUG-FILES.md says how to get debug "
		   "files)",
		   s->path, s->build_id[0] != '\0' ? s->build_id : "none", remedy);
}

static void say_all_stripped(struct file_checks *k)
{
	struct debian_file owned[STRIPPED_MAX];
	const size_t n = min_size(k->n_stripped, STRIPPED_MAX);

	for (size_t i = 0; i < n; i++)
		owned[i] = (struct debian_file){.path = k->stripped[i].path};
	if (n > 0 && has_own_root(k->d->pid))
		debian_package_find(DEBIAN_PACKAGE_QUERY, DEBIAN_PACKAGE_LIMIT_NS, owned, n);
	for (size_t i = 0; i < n; i++)
		say_stripped(k, &k->stripped[i], owned[i].package);
	if (k->n_stripped > n)
		doctor_say(k->d, FINDING_OK, "names", "%zu more files are stripped",
			   k->n_stripped - n);
}

static void check_files(struct file_checks *k)
{
	char program[PATH_MAX];
	uint64_t jit_bytes = 0;

	program_path(k->d->pid, program);
	for (size_t i = 0; i < k->maps.n; i++) {
		const struct map *m = &k->maps.v[i], *file = file_of(&k->maps, m);

		if (file == NULL)
			jit_bytes += m->end - m->start;
		else if (file->path[0] != '/')
			continue; /* the vDSO */
		else if (is_new_file(&k->maps, i, file))
			check_file(k, file, strcmp(file->path, program) == 0);
	}
	doctor_say(k->d, FINDING_OK, "files",
		   "%zu with code, %zu of them stripped: in those only exported "
		   "functions have names, unless Sentry has their debug "
		   "files",
		   k->files, k->n_stripped);
	say_all_stripped(k);
	say_leaks(k);
	say_uploads(k);
	check_jit(k, jit_bytes);
}

static int read_maps(struct file_checks *k)
{
	int fd = open(procfs_path(k->d->pid, "task/%d/maps", threads_find_living(k->d->pid)).text,
		      O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = buf_read_fd(&k->text, fd);
	close_fd(&fd);
	if (r == 0)
		r = maps_parse(&k->maps, buf_string(&k->text), k->text.len, UNWIND_MAPS_MAX);
	return r;
}

void doctor_files(struct doctor *d)
{
	static struct file_checks k;
	int r;

	k = (struct file_checks){.d = d};
	buf_init(&k.text, MAPS_TEXT_MAX);
	buf_init(&k.uploads, UPLOADS_MAX * PATH_MAX);
	r = read_maps(&k);
	if (r == 0) {
		doctor_reporter(d, &k.maps);
		check_files(&k);
		maps_fini(&k.maps);
		file_reader_end(&k.reader);
	} else {
		doctor_say(d, d->may_trace || d->is_profiled ? FINDING_WARNING : FINDING_FAULT,
			   "files", "cannot read the memory map of the process: %s%s", strerror(-r),
			   r == -EACCES ? "; run this as root" : "");
	}
	buf_fini(&k.uploads);
	buf_fini(&k.text);
}
