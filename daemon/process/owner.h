/*
 * Whose a process is: with which ids its files are opened, and which unwind process may have its
 * memory. A reading holds for a moment only, since the process can change its credentials, and can
 * execute a program that has other rights. So whoever hands out something of a process compares
 * readings from before and after.
 *
 * Root: all uids are 0, in the user namespace of this process. Plain: one user's process, which has
 * no more rights than this user: all uids are equal, all gids are equal, it has no capabilities
 * (those in another user namespace do not count), and its files in /proc belong to this user.
 * Mixed: all others, such as a set-user-ID program, one with file or ambient capabilities, one that
 * is not dumpable, and a process of root that has taken a user's uid without an exec.
 *
 * Servers such as Apache and php-fpm fork a pool of workers, which are mixed only because they are
 * not dumpable. The workers of one parent that have the same ids and have not executed a program
 * since share a key: none has anything that the others have not got, too.
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
	int32_t tid; /* a thread that has not exited: /proc/TID has the memory of the process */
	/* The effective ids. Mixed: uid is the first of its uids that is not 0, if there is one. */
	uint32_t uid, gid;
	uint32_t n_groups;
	uint32_t groups[IDS_GROUPS_MAX];
	uint32_t files_uid;   /* whose its files in /proc are */
	int32_t pool;	      /* the parent of a worker as above; 0: it is none */
	uint64_t start_ticks; /* since boot; with the pid, the identity of the process */
	uint64_t program;     /* the start of its stack, which an exec almost certainly changes */
	uint64_t all_groups;  /* a hash of all its supplementary groups */
	uint64_t user_namespace; /* inode; 0: it cannot be read */
};

/*
 * Reads whose process pid is. Returns 0; -ESRCH: it has ended, or is about to; or an error of a
 * shortage (daemon/common/shortage.h). A process of which only a part can be read is mixed.
 */
must_check int owner_read(int32_t pid, struct owner *ret);

/*
 * Reads the process of *owner again. A mixed process that has only uids 0 now stays mixed, with the
 * ids of *owner, until an exec: it may change its uids all the time. Returns as owner_read().
 */
must_check int owner_read_again(const struct owner *owner, struct owner *ret);

/*
 * The key of an owner. Processes with equal keys may share an unwind process: all of root's, the
 * plain ones with the same user, groups and user namespace; the workers of a pool; and each other
 * mixed process only itself, until it executes a program.
 */
struct owner_key {
	uint32_t kind; /* enum owner_kind; the members below that do not count are 0 */
	uint32_t uid;
	uint32_t gid;			     /* plain, or of a pool */
	int32_t pid;			     /* mixed; of a pool the parent's */
	uint64_t program;		     /* mixed, or of a pool */
	uint64_t start_ticks;		     /* mixed, not of a pool */
	uint64_t all_groups, user_namespace; /* plain, or of a pool */
};
struct owner_key owner_key(const struct owner *owner);
bool owner_key_equal(const struct owner_key *a, const struct owner_key *b);
bool owner_is_same(const struct owner *a, const struct owner *b);

/* Returns true if *now is the same process with the same key, and it runs the same program. */
bool owner_is_unchanged(const struct owner *before, const struct owner *now);

/* Returns true if the process is a plain one of this user. */
bool owner_is_user(const struct owner *owner, uint32_t uid);

#endif
