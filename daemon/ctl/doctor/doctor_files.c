/*
 * A process's files: are stacks found through them, do functions have names,
 * and what is to be uploaded to Sentry; and code that is in no file.
 *
 * They are opened with the rights of profctl's user, and read by a
 * sentry-profd-unwind of its own, in its sandbox.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ctl/doctor/doctor.h"
#include "daemon/ctl/own_unwind.h"
#include "daemon/process/open.h"
#include "daemon/process/process.h"
#include "daemon/process/process_root.h"
#include "daemon/process/threads.h"
#include "lib/base/buf.h"
#include "lib/base/procfs.h"
#include "lib/unwind/space/maps.h"
#include "lib/unwind/unwind.h"

#define MAPS_TEXT_MAX (16u << 20)

/* Trampolines of libffi and the like are no program of their own. */
#define JIT_BYTES_MIN 65536

/* sentry-cli's line is for a terminal; a directory can be given, too. */
#define UPLOADS_MAX 16

/* What one file of a process has. */
struct file {
	const char *path; /* as the process names it */
	struct msg_file_seen seen;
	char debug[PATH_MAX]; /* its separate debug file; "": none */
};

struct look {
	struct doctor *d;
	struct own_unwind unwind;
	struct buf text;
	struct maps maps;
	size_t files, stripped;
	struct buf uploads; /* paths, with a blank before each */
	size_t n_uploads;
};

static void find_debug_file(const struct look *k, struct file *ret)
{
	int fd;

	if (strlen(ret->seen.build_id) < 4 ||
	    process_root_open_debug(k->d->pid, ret->seen.build_id, &fd) < 0)
		return;
	(void)!procfs_link(procfs_own_fd(fd).text, ret->debug, sizeof(ret->debug));
	close_fd(&fd);
}

static void add_upload(struct look *k, const char *path)
{
	k->n_uploads++;
	if (k->n_uploads <= UPLOADS_MAX)
		(void)!buf_printf(&k->uploads, " %s", path);
}

static void say_file(struct look *k, const struct file *f, bool is_program)
{
	const struct msg_file_seen *seen = &f->seen;
	const char *id = seen->build_id[0] != '\0' ? seen->build_id : "none";
	const bool is_stripped = !seen->has_symbols && f->debug[0] == '\0';

	if (!seen->has_cfi)
		doctor_say(k->d, FINDING_WARNING, "stacks",
			   "%s has no call frame information: stacks through "
			   "it %s (compile it with "
			   "-fasynchronous-unwind-tables)",
			   f->path,
			   seen->keeps_frame_pointers ? "are found by its frame pointers"
						      : "end there: it keeps no frame pointers "
							"either");
	if (seen->build_id[0] == '\0')
		doctor_say(k->d, FINDING_WARNING, "build-id",
			   "%s has none, so its debug files are known by a "
			   "checksum of its code only (link it with "
			   "-Wl,--build-id)",
			   f->path);
	k->stripped += is_stripped;
	if (is_program && is_stripped)
		doctor_say(k->d, FINDING_WARNING, "names",
			   "%s is stripped, and there is no debug file of "
			   "build-id %s: functions that it does not export "
			   "have no names here (install its debug package, or "
			   "upload its debug file to Sentry)",
			   f->path, id);
	else if (is_program || f->debug[0] != '\0' || seen->has_debug_info)
		doctor_say(k->d, FINDING_OK, "names", "%s (build-id %s): %s%s", f->path, id,
			   f->debug[0] != '\0'	  ? "debug file "
			   : seen->has_debug_info ? "debug information"
			   : seen->has_symbols	  ? "symbols, and no lines"
						  : "exported names",
			   f->debug);
	if (f->debug[0] != '\0')
		add_upload(k, f->debug);
	if (seen->has_debug_info || (is_program && seen->has_symbols))
		add_upload(k, f->path);
}

/* The first mapping of each file. */
static bool is_first(const struct maps *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (m->v[i].inode == m->v[n].inode && m->v[i].device == m->v[n].device)
			return false;
	return true;
}

/* The file cannot be had here, so what is said of it would be untrue. */
static void say_unopened(struct look *k, const char *path, int error)
{
	capability_set have;
	const bool may =
		privileges_get(&have) == 0 && (have & CAPABILITY(CAP_CHECKPOINT_RESTORE)) != 0;

	doctor_say(k->d, FINDING_WARNING, "file",
		   "%s cannot be opened: %s: sentry-profd with these rights "
		   "reads what is mapped of it, which has fewer names or "
		   "none%s",
		   path, strerror(error),
		   may ? ""
		       : " (CAP_CHECKPOINT_RESTORE opens every file that "
			 "is mapped)");
}

static void say_verdict(struct look *k, const struct file *f, bool is_program)
{
	const char *what = "is no ELF file";

	switch ((enum file_verdict)f->seen.verdict) {
	case FILE_READ:
		say_file(k, f, is_program);
		return;
	case FILE_32_BIT:
		what = "is a 32-bit ELF file";
		break;
	case FILE_DAMAGED:
		what = "is a damaged ELF file, or of another processor";
		break;
	case FILE_NO_ELF:
	case FILE_VERDICT_END:
		break;
	}
	doctor_say(k->d, FINDING_WARNING, "file",
		   "%s is mapped as code, and %s: its stacks are found by "
		   "frame pointers, and it has no names",
		   f->path, what);
}

/* An unwind that has ended at a file is started again for the next one. */
static int ask_unwind(struct look *k, int fd, struct msg_file_seen *ret)
{
	int r = k->unwind.page == NULL ? own_unwind_start(&k->unwind) : 0;

	if (r == 0)
		r = own_unwind_look(&k->unwind, fd, ret);
	if (r < 0)
		own_unwind_end(&k->unwind);
	return r;
}

static void look_at_file(struct look *k, const struct map *m, bool is_program)
{
	const struct open_order order = {
		.pid = k->d->pid,
		.kind = FILE_KIND_IMAGE,
		.start = m->start,
		.end = m->end,
		.is_whole = true,
	};
	static struct file f;
	int fd, r;

	f = (struct file){.path = m->path};
	k->files++;
	r = open_for(&order, &fd);
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
	find_debug_file(k, &f);
	say_verdict(k, &f, is_program);
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
		   buf_string(&k->uploads), k->n_uploads > UPLOADS_MAX ? " ..." : "");
}

/* Of code that a runtime makes, a perf map is all that has names. */
static void check_jit(struct look *k, uint64_t bytes)
{
	char name[PROCESS_NAME_SIZE];
	int fd;

	if (bytes < JIT_BYTES_MIN)
		return;
	process_name(k->d->pid, name);
	if (process_root_open_perf_map(k->d->pid, &fd) == 0) {
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
	       strncmp(m->path, "/memfd:", 7) == 0 || strncmp(m->path, "/dev/zero", 9) == 0;
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
	int fd = open(procfs_path(k->d->pid, "task/%d/maps", threads_living(k->d->pid)).text,
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
	struct look k = {.d = d};
	int r;

	buf_init(&k.text, MAPS_TEXT_MAX);
	buf_init(&k.uploads, UPLOADS_MAX * PATH_MAX);
	r = read_maps(&k);
	if (r == 0) {
		look_at_all(&k);
		maps_fini(&k.maps);
		own_unwind_end(&k.unwind);
	} else {
		doctor_say(d, FINDING_FAULT, "files", "its mappings cannot be read: %s",
			   strerror(-r));
	}
	buf_fini(&k.uploads);
	buf_fini(&k.text);
}
