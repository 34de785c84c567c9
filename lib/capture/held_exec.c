#include "lib/capture/held_exec.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/base/procfs.h"
#include "lib/capture/state.h"
#include "lib/capture/targets.h"
#include "lib/capture/tracees.h"

/* Reads what process pid executes. The file system of the file is not asked, since it may hang. */
static bool read_file(int32_t pid, struct executed_file *ret)
{
	struct statx file, owner;

	if (statx(AT_FDCWD, procfs_path(pid, "exe").text, AT_STATX_DONT_SYNC, STATX_BASIC_STATS,
		  &file) < 0 ||
	    statx(AT_FDCWD, procfs_path(pid, "stat").text, AT_STATX_DONT_SYNC, STATX_UID, &owner) <
		    0)
		return false;
	*ret = (struct executed_file){
		.is_set = true,
		.uid = owner.stx_uid,
		.identity =
			{
				.device = makedev(file.stx_dev_major, file.stx_dev_minor),
				.inode = file.stx_ino,
				.size = file.stx_size,
				.ctime_ns = (uint64_t)file.stx_ctime.tv_sec * NS_PER_SEC +
					    file.stx_ctime.tv_nsec,
			},
	};
	return true;
}

static struct executed_file *place_in_cache(struct capture *c, const struct executed_file *f)
{
	const uint64_t key = f->identity.inode ^ f->identity.device ^ f->uid;

	return &c->trusted_files[key % TRUSTED_FILES];
}

static bool is_trusted(struct capture *c, const struct executed_file *f)
{
	const struct executed_file *known = place_in_cache(c, f);

	return f->is_set && known->is_set && known->uid == f->uid &&
	       file_identity_equal(&known->identity, &f->identity);
}

bool held_exec_begin(struct capture *c, int32_t pid)
{
	struct executed_file file = {.is_set = false};
	struct traced_process *t = targets_find(c, pid);

	if (c->options.executed == NULL || c->n_held_execs == HELD_EXEC_MAX)
		return false;
	if ((read_file(pid, &file) && is_trusted(c, &file)) ||
	    !c->options.executed(c->options.ctx, pid))
		return false;
	c->held_execs[c->n_held_execs++] =
		(struct held_exec){.pid = pid, .since_ns = c->options.now_ns(), .file = file};
	if (t != NULL) {
		t->exec.held = true;
		tracees_forget_all(t);
	}
	return true;
}

static size_t place_of(const struct capture *c, int32_t pid)
{
	size_t i = 0;

	while (i < c->n_held_execs && c->held_execs[i].pid != pid)
		i++;
	return i;
}

void held_exec_is_target(struct traced_process *t)
{
	t->exec.held = held_exec_is(t->capture, t->pid);
}

bool held_exec_is(const struct capture *c, int32_t pid)
{
	return place_of(c, pid) < c->n_held_execs;
}

bool held_exec_end(struct capture *c, int32_t pid)
{
	struct traced_process *t = targets_find(c, pid);
	const size_t i = place_of(c, pid);

	if (i == c->n_held_execs)
		return false;
	c->held_execs[i] = c->held_execs[--c->n_held_execs];
	if (t != NULL)
		t->exec.held = false;
	return true;
}

void held_exec_forget_all(struct capture *c)
{
	while (c->n_held_execs > 0)
		(void)held_exec_end(c, c->held_execs[0].pid);
}

int32_t held_exec_overdue(const struct capture *c)
{
	for (size_t i = 0; i < c->n_held_execs; i++)
		if (c->options.now_ns() - c->held_execs[i].since_ns >= HELD_EXEC_NS)
			return c->held_execs[i].pid;
	return 0;
}

bool capture_holds_execs(const struct capture *c)
{
	return c->n_held_execs > 0;
}

void capture_trust_exec(struct capture *c, int32_t pid)
{
	const size_t i = place_of(c, pid);

	if (i < c->n_held_execs && c->held_execs[i].file.is_set)
		*place_in_cache(c, &c->held_execs[i].file) = c->held_execs[i].file;
}
