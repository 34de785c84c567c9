#include "daemon/process/peer.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/common/privileges.h"
#include "daemon/process/namespace.h"
#include "daemon/process/process.h"
#include "lib/base/procfs.h"
#include "lib/base/small_file.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* The kernel's NGROUPS_MAX. */
#define GROUPS_MAX 65536

void peer_groups(struct peer_groups *ret)
{
	FILE *file = fopen("/etc/group", "re");
	struct group *entry;

	*ret = (struct peer_groups){PEER_NO_GROUP, PEER_NO_GROUP};
	if (file == NULL)
		return;
	while ((entry = fgetgrent(file)) != NULL) {
		if (strcmp(entry->gr_name, PEER_OPERATORS) == 0)
			ret->operators = entry->gr_gid;
		else if (strcmp(entry->gr_name, PEER_VIEWERS) == 0)
			ret->viewers = entry->gr_gid;
	}
	(void)fclose(file);
}

/* Returns true if the peer's group, or one of its supplementary groups, is gid. */
static bool is_in_group(int fd, const struct ucred *credentials, uint32_t gid)
{
	gid_t *groups = NULL;
	socklen_t size = 0;
	bool found = false;

	if (gid == PEER_NO_GROUP)
		return false;
	if (credentials->gid == gid)
		return true;
	/*
	 * Fails with ERANGE and sets the needed size; succeeds if the peer has no supplementary
	 * groups.
	 */
	/* cppcheck-suppress nullPointer ; with size 0, getsockopt takes NULL */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) == 0 || errno != ERANGE ||
	    size > GROUPS_MAX * sizeof(*groups))
		return false;
	groups = malloc(size);
	if (groups != NULL && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0)
		for (size_t i = 0; i < size / sizeof(*groups); i++)
			found |= groups[i] == gid;
	free(groups);
	return found;
}

/* Used if there is no pidfd of the peer. True if process pid still belongs to the same user. */
static bool may_be_same_process(int32_t pid, uint32_t uid)
{
	struct process look;
	enum process_fault fault = process_look(pid, &look);
	bool same = (fault == PROCESS_OK || fault == PROCESS_TRACED) && look.uid == uid;

	close_fd(&look.pidfd);
	return same;
}

/* Returns true if process p->pid is the peer: everything that was read of it is of the peer. */
static bool is_peer(int fd, const struct peer *p)
{
	int pidfd = -1;
	socklen_t size = sizeof(pidfd);
	bool is_alive;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) < 0)
		return errno == ENOPROTOOPT && may_be_same_process(p->pid, p->uid);
	is_alive = process_is_alive(pidfd);
	close_fd(&pidfd);
	return is_alive;
}

bool peer_look(struct peer *p)
{
	struct process_identity before, after;

	if (!process_identity(p->pid, &before) || !credentials_read(p->pid, &p->credentials) ||
	    !process_identity(p->pid, &after) || after.start_ticks != before.start_ticks ||
	    after.start_stack != before.start_stack)
		return false;
	p->start_ticks = after.start_ticks;
	p->start_stack = after.start_stack;
	return true;
}

bool peer_speaks(const struct peer *p)
{
	const struct credentials *then = &p->credentials;
	struct peer now = {.pid = p->pid};
	struct process_identity identity;

	/*
	 * The peer executed a set-user-ID or set-group-ID program before the daemon accepted the
	 * connection.
	 */
	if (p->start_ticks == 0 || then->ids.uid[IDS_EFFECTIVE] != p->uid ||
	    then->ids.gid[IDS_EFFECTIVE] != p->gid)
		return false;
	if (!process_identity(p->pid, &identity) || identity.start_ticks != p->start_ticks)
		return false;
	if (identity.start_stack != 0 && identity.start_stack == p->start_stack)
		return true;
	return peer_look(&now) && now.start_ticks == p->start_ticks &&
	       credentials_are_equal(&now.credentials, then);
}

/*
 * Returns true if a process of uid 0 has the rights of root where the daemon runs. Root of a
 * container that has the socket mounted does not have these rights. A daemon without CAP_SYS_PTRACE
 * cannot read the namespaces of the peer, and can do nothing for a peer that the peer could not do
 * itself.
 */
static bool is_root_here(int32_t pid)
{
	char text[PROCFS_STATUS_MAX];
	capability_set own, effective;

	if (privileges_permitted(&own) == 0 && (own & CAPABILITY(CAP_SYS_PTRACE)) == 0)
		return true;
	return pid > 0 &&
	       namespace_is_same("/proc/self/ns/user", procfs_path(pid, "ns/user").text) &&
	       namespace_is_same("/proc/self/ns/pid", procfs_path(pid, "ns/pid").text) &&
	       small_file_read(AT_FDCWD, procfs_path(pid, "status").text, text, sizeof(text)) ==
		       0 &&
	       procfs_numbers(text, "\nCapEff:", 16, &effective, 1) == 1 &&
	       (effective & CAPABILITY(CAP_SYS_PTRACE)) != 0;
}

int peer_of(int fd, uint32_t own_uid, const struct peer_groups *groups, struct peer *ret)
{
	struct ucred credentials;
	socklen_t size = sizeof(credentials);
	struct peer p;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
		return -errno;
	p = (struct peer){
		.pid = credentials.pid,
		.uid = credentials.uid,
		.gid = credentials.gid,
		.is_operator = (credentials.uid == 0 && is_root_here(credentials.pid)) ||
			       (own_uid != 0 && credentials.uid == own_uid) ||
			       is_in_group(fd, &credentials, groups->operators),
	};
	p.sees_all = p.is_operator || is_in_group(fd, &credentials, groups->viewers);
	/*
	 * is_peer() is called last: if the peer is alive then, all earlier readings were of the
	 * peer.
	 */
	if (p.pid > 0 && (!peer_look(&p) || !is_peer(fd, &p)))
		p.start_ticks = 0;
	*ret = p;
	return 0;
}
