#include "daemon/process/owner.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/common/resource_shortage.h"
#include "daemon/process/credentials.h"
#include "daemon/process/process.h"
#include "daemon/process/threads.h"
#include "lib/base/procfs.h"
#include "lib/base/small_file.h"

/* Fields of proc_pid_stat(5). */
enum { PARENT = 4, START_TICKS = 22, MEMORY_SIZE = 23, START_STACK = 28 };

/* Returns the inode of the file at path; 0 if the file cannot be read. */
static uint64_t inode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_ino : 0;
}

static bool are_equal(const uint32_t ids[IDS_N])
{
	return ids[1] == ids[0] && ids[2] == ids[0] && ids[3] == ids[0];
}

static uint32_t uid_of_mixed(const uint32_t ids[IDS_N])
{
	uint32_t uid = ids[IDS_EFFECTIVE];

	for (int i = 0; i < IDS_N && uid == 0; i++)
		uid = ids[i];
	return uid;
}

static enum owner_kind kind_of(const struct credentials *c, uint64_t user_namespace)
{
	static uint64_t own; /* the daemon's, which does not change */
	const uint32_t uid = c->ids.uid[IDS_EFFECTIVE];
	bool is_elsewhere;

	if (own == 0)
		own = inode_of("/proc/self/ns/user");
	is_elsewhere = user_namespace != 0 && user_namespace != own;
	if (!are_equal(c->ids.uid))
		return OWNER_MIXED;
	if (uid == 0 && !is_elsewhere)
		return OWNER_ROOT;
	return are_equal(c->ids.gid) && c->files_uid == uid && (c->permitted == 0 || is_elsewhere)
		       ? OWNER_PLAIN
		       : OWNER_MIXED;
}

static void read_credentials(const char *status, struct owner *ret)
{
	struct credentials c = {0};
	/* If the status is cut off behind the lines of the ids, the ids are used all the same. */
	const bool is_complete =
		ids_parse(status, &c.ids) && credentials_parse(status, ret->files_uid, &c) &&
		ids_parse_groups(status, ret->groups, &ret->n_groups, &ret->all_groups);

	ret->kind = is_complete ? kind_of(&c, ret->user_namespace) : OWNER_MIXED;
	ret->uid = ret->kind == OWNER_MIXED ? uid_of_mixed(c.ids.uid) : c.ids.uid[IDS_EFFECTIVE];
	ret->gid = c.ids.gid[IDS_EFFECTIVE];
	ret->permitted = c.permitted;
	if (ret->kind != OWNER_MIXED || !is_complete || ret->uid == 0 || !are_equal(c.ids.uid) ||
	    !are_equal(c.ids.gid))
		ret->pool = 0;
}

/* Reads a file of a process. Returns 0, -ESRCH, or an error of a shortage. */
static int read_text(int32_t tid, const char *name, char *ret, size_t size)
{
	const int r = small_file_read(AT_FDCWD, procfs_path(tid, "%s", name).text, ret, size);

	return r == 0 || resource_shortage_is(-r) ? r : -ESRCH;
}

/*
 * Reads the start of the stack from the stat file of thread tid. Returns -EAGAIN if the thread has
 * no memory: an exiting thread gives up its memory before it becomes a zombie, and from then on its
 * files belong to root.
 */
static int read_program(int32_t tid, uint64_t *ret)
{
	char stat[PROCFS_TEXT_MAX];
	int r = read_text(tid, "stat", stat, sizeof(stat));

	if (r == 0 && procfs_stat_number(stat, MEMORY_SIZE) == 0)
		r = -EAGAIN;
	*ret = procfs_stat_number(stat, START_STACK);
	return r == -ESRCH ? -EAGAIN : r;
}

/* Returns -EAGAIN if the process executes a program, or a thread of it exits, at this moment. */
static int read_once(int32_t pid, struct owner *ret)
{
	struct owner o = {.pid = pid};
	char stat[PROCFS_TEXT_MAX], status[PROCFS_STATUS_MAX];
	uint64_t program;
	int r;

	/*
	 * The program is read first. If the process executes another program meanwhile, the
	 * credentials of the new program are stored with the identity of the old one, and the next
	 * reading shows that the program has changed.
	 */
	r = read_text(pid, "stat", stat, sizeof(stat));
	if (r < 0)
		return r;
	o.start_ticks = procfs_stat_number(stat, START_TICKS);
	/*
	 * The kernel makes init the parent of every orphan, so such a parent does not identify a
	 * pool.
	 */
	o.pool = (int32_t)procfs_stat_number(stat, PARENT);
	o.pool = o.pool == 1 ? 0 : o.pool;
	o.tid = pid;
	o.program = procfs_stat_number(stat, START_STACK);
	/* /proc/PID has no memory, and belongs to root, once the leader has exited. */
	if (procfs_stat_number(stat, MEMORY_SIZE) == 0) {
		o.tid = threads_find_living(pid);
		r = read_program(o.tid, &o.program);
		if (r < 0)
			return r;
	}
	o.files_uid = process_owner(o.tid);
	o.user_namespace = inode_of(procfs_path(o.tid, "ns/user").text);
	r = read_text(o.tid, "status", status, sizeof(status));
	if (r < 0)
		return r == -ESRCH ? -EAGAIN : r;
	read_credentials(status, &o);
	/*
	 * A process that has exited since the first reading looks mixed, and so may a process that
	 * has executed a program.
	 */
	if (o.kind == OWNER_MIXED) {
		r = read_program(o.tid, &program);
		if (r < 0 || program != o.program)
			return r < 0 ? r : -EAGAIN;
	}
	*ret = o;
	return 0;
}

/* An exec by another thread than the leader takes some ten microseconds. */
#define TRIES 10

int owner_read(int32_t pid, struct owner *ret)
{
	int r = -EAGAIN;

	for (int n = 0; n < TRIES && r == -EAGAIN; n++)
		r = read_once(pid, ret);
	return r == -EAGAIN ? -ESRCH : r;
}

int owner_read_again(const struct owner *owner, struct owner *ret)
{
	int r = owner_read(owner->pid, ret);

	if (r == 0 && owner->kind == OWNER_MIXED && ret->kind != OWNER_PLAIN &&
	    ret->start_ticks == owner->start_ticks && ret->program == owner->program) {
		const struct owner now = *ret;

		*ret = *owner;
		ret->tid = now.tid;
		ret->files_uid = now.files_uid;
	}
	return r;
}

struct owner_key owner_key(const struct owner *owner)
{
	struct owner_key key = {.kind = owner->kind, .uid = owner->uid};

	if (owner->kind == OWNER_MIXED && owner->pool == 0) {
		key.pid = owner->pid;
		key.start_ticks = owner->start_ticks;
		key.program = owner->program;
	} else if (owner->kind == OWNER_PLAIN || owner->kind == OWNER_MIXED) {
		key.gid = owner->gid;
		key.all_groups = owner->all_groups;
		key.user_namespace = owner->user_namespace;
		key.pid = owner->kind == OWNER_MIXED ? owner->pool : 0;
		key.program = owner->kind == OWNER_MIXED ? owner->program : 0;
		key.permitted = owner->kind == OWNER_MIXED ? owner->permitted : 0;
	}
	return key;
}

/* The struct has no padding. */
_Static_assert(sizeof(struct owner_key) == 4 * 4 + 5 * 8, "padding");

bool owner_key_equal(const struct owner_key *a, const struct owner_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

bool owner_is_same(const struct owner *a, const struct owner *b)
{
	const struct owner_key of_a = owner_key(a), of_b = owner_key(b);

	return owner_key_equal(&of_a, &of_b);
}

bool owner_is_unchanged(const struct owner *before, const struct owner *now)
{
	return owner_is_same(before, now) && before->pid == now->pid &&
	       before->start_ticks == now->start_ticks && before->program == now->program;
}

bool owner_is_user(const struct owner *owner, uint32_t uid)
{
	return owner->kind == OWNER_PLAIN && owner->uid == uid;
}
