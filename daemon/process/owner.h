/*
 * Reads the owner of a process: the ids with which the daemon opens files of the process, and a key
 * that decides which unwind process gets the memory of the process. The owner can change at any
 * time, because the process changes its credentials or executes a program with other rights. So
 * code that hands out a file or memory of a process reads the owner before and after, and compares
 * both.
 *
 * An owner has one of three kinds:
 * - Root: all uids of the process are 0, and its user namespace is that of the daemon (or cannot be
 *   read).
 * - Plain: a process of one user, with no more rights than this user. All uids are equal, and all
 *   gids. The process has no capabilities (those in another user namespace do not count), and its
 *   files in /proc belong to this user.
 * - Mixed: all other processes, such as a set-user-ID program, a program with file or ambient
 *   capabilities, a process that is not dumpable, and a process of root that has taken a user's uid
 *   without an exec.
 *
 * Servers such as Apache and php-fpm fork a pool of workers. The workers are mixed because they are
 * not dumpable, or because the server has a capability such as CAP_NET_BIND_SERVICE. Workers of one
 * parent share a key if they have the same ids and capabilities, and have executed no program since
 * the fork: then each worker has the same data and rights. A process may be a worker if it is
 * mixed, its uids are equal and not 0, its gids are equal, and its parent is not init (pid 1).
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
	int32_t tid; /* a living thread: /proc/TID shows the memory even if the leader has exited */
	/*
	 * The effective ids. Exception: if a mixed process has the effective uid 0, uid is its
	 * real, saved or file system uid, the first in this order that is not 0; else 0.
	 */
	uint32_t uid, gid;
	/* The first supplementary groups (ids.h). */
	uint32_t n_groups;
	uint32_t groups[IDS_GROUPS_MAX];
	uint32_t files_uid;	 /* the owner of the files in /proc/TID */
	int32_t pool;		 /* the parent's pid, if the process may be a worker; else 0 */
	uint64_t start_ticks;	 /* clock ticks since boot; with the pid, the identity */
	uint64_t program;	 /* the start of the stack; an exec almost certainly changes it */
	uint64_t all_groups;	 /* a hash of all supplementary groups */
	uint64_t user_namespace; /* inode; 0: the daemon cannot read the namespace */
	uint64_t permitted;	 /* capabilities, in the process's user namespace */
};

/*
 * Reads the owner of process pid. Returns 0; -ESRCH if the process has ended, is about to end, or
 * executes programs so fast that ten readings in a row fail; or the -errno of a lack of descriptors
 * or memory (daemon/common/resource_shortage.h), such as -EMFILE. If the credentials cannot be read
 * completely, the owner is mixed.
 */
must_check int owner_read(int32_t pid, struct owner *ret);

/*
 * Reads the owner of process owner->pid again. A mixed process may change its uids all the time,
 * and keeps its key nevertheless: *ret is *owner, with tid and files_uid read anew, if
 * - *owner is mixed, and the process is not plain now, and
 * - it is still the same process (start_ticks), and has executed no program since (program).
 * In all other cases *ret is what owner_read() reads. Returns what owner_read() returns.
 */
must_check int owner_read_again(const struct owner *owner, struct owner *ret);

/*
 * The key of an owner. Processes with equal keys may share an unwind process. Equal keys have
 * - all processes of root;
 * - plain processes with the same user, groups and user namespace;
 * - the workers of a pool.
 * Each other mixed process has a key of its own, and a new key after each exec.
 *
 * kind and uid count for every owner. The comment on each other member says for which owners it
 * counts; for all others it is 0. Pool: a worker of a pool (owner.pool is not 0), which is mixed.
 * Single: any other mixed process.
 */
struct owner_key {
	uint32_t kind; /* enum owner_kind */
	uint32_t uid;
	uint32_t gid;			     /* plain, pool */
	int32_t pid;			     /* single; pool: the parent's */
	uint64_t program;		     /* single, pool */
	uint64_t start_ticks;		     /* single */
	uint64_t all_groups, user_namespace; /* plain, pool */
	uint64_t permitted;		     /* pool */
};
struct owner_key owner_key(const struct owner *owner);
bool owner_key_equal(const struct owner_key *a, const struct owner_key *b);
/* Returns true if both owners have equal keys. The two can be owners of different processes. */
bool owner_is_same(const struct owner *a, const struct owner *b);

/* Returns true if both readings are of one process, with the same key and the same program. */
bool owner_is_unchanged(const struct owner *before, const struct owner *now);

/* Returns true if the process is a plain process of this user. */
bool owner_is_user(const struct owner *owner, uint32_t uid);

#endif
