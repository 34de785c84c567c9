/*
 * The owner of a process: the ids with which the daemon opens files of the process, and the key
 * that decides which unwind process may have its memory. A reading of the owner holds for a moment
 * only, since the process can change its credentials, and can execute a program that has other
 * rights. So code that hands out something of a process compares readings from before and after.
 *
 * An owner has one of three kinds:
 * - Root: all uids of the process are 0, in the user namespace of the reading process.
 * - Plain: a process of one user, which has no more rights than this user: all uids are equal, all
 *   gids are equal, the process has no capabilities (those in another user namespace do not count),
 *   and its files in /proc belong to this user.
 * - Mixed: all other processes, such as a set-user-ID program, a program with file or ambient
 *   capabilities, a process that is not dumpable, and a process of root that has taken a user's uid
 *   without an exec.
 *
 * Servers such as Apache and php-fpm fork a pool of workers, which are mixed because they are not
 * dumpable, or because the server has a capability such as CAP_NET_BIND_SERVICE. The workers of one
 * parent that have the same ids and capabilities and have not executed a program since share a key:
 * no worker has anything that the other workers do not have, too.
 */
#ifndef DAEMON_PROCESS_OWNER_H
#define DAEMON_PROCESS_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/process/ids.h"
#include "lib/base/util.h"

enum owner_kind {
	OWNER_NONE, /* no process was read */
	OWNER_ROOT,
	OWNER_PLAIN,
	OWNER_MIXED,
};

struct owner {
	uint32_t kind; /* enum owner_kind */
	int32_t pid;
	int32_t tid; /* a living thread: /proc/TID has the memory of the process */
	/*
	 * The effective ids. If a mixed process has the effective uid 0, uid is the first of its
	 * uids that is not 0, or 0 if there is none.
	 */
	uint32_t uid, gid;
	uint32_t n_groups;
	uint32_t groups[IDS_GROUPS_MAX];
	uint32_t files_uid;	 /* the owner of the files in /proc/TID */
	int32_t pool;		 /* the parent, if the process is a worker of a pool; else 0 */
	uint64_t start_ticks;	 /* since boot; with the pid, the identity of the process */
	uint64_t program;	 /* the start of the stack; an exec almost certainly changes it */
	uint64_t all_groups;	 /* a hash of all supplementary groups */
	uint64_t user_namespace; /* inode; 0: the daemon cannot read the namespace */
	uint64_t permitted;	 /* capabilities, in the process's user namespace */
};

/*
 * Reads the owner of process pid. Returns 0; -ESRCH if the process has ended, or is about to end;
 * or an error of a shortage (daemon/common/resource_shortage.h). A process of which the daemon can
 * read only a part is mixed.
 */
must_check int owner_read(int32_t pid, struct owner *ret);

/*
 * Reads the owner of the same process again. If *owner is mixed and the process now has only uids
 * 0, the process stays mixed, with the ids of *owner, until it executes a program: such a process
 * may change its uids all the time. Returns as owner_read().
 */
must_check int owner_read_again(const struct owner *owner, struct owner *ret);

/*
 * The key of an owner. Processes with equal keys may share an unwind process. All processes of root
 * share a key, so do plain processes with the same user, groups and user namespace, and so do the
 * workers of a pool. Each other mixed process has a key of its own until it executes a program.
 */
struct owner_key {
	uint32_t kind; /* enum owner_kind; a member below that does not count for this kind is 0 */
	uint32_t uid;
	uint32_t gid;			     /* plain, or of a pool */
	int32_t pid;			     /* mixed; of a pool the parent's */
	uint64_t program;		     /* mixed, or of a pool */
	uint64_t start_ticks;		     /* mixed, not of a pool */
	uint64_t all_groups, user_namespace; /* plain, or of a pool */
	uint64_t permitted;		     /* of a pool */
};
struct owner_key owner_key(const struct owner *owner);
bool owner_key_equal(const struct owner_key *a, const struct owner_key *b);
bool owner_is_same(const struct owner *a, const struct owner *b);

/*
 * Returns true if both are the same process, with the same key, and the process runs the same
 * program.
 */
bool owner_is_unchanged(const struct owner *before, const struct owner *now);

/* Returns true if the process is a plain process of this user. */
bool owner_is_user(const struct owner *owner, uint32_t uid);

#endif
