#include "daemon/process/may_trace.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "daemon/process/credentials.h"
#include "daemon/process/namespace.h"
#include "lib/base/procfs.h"

static bool are_all(const uint32_t ids[IDS_N], uint32_t id)
{
	return ids[IDS_REAL] == id && ids[IDS_EFFECTIVE] == id && ids[IDS_SAVED] == id;
}

static int open_namespace(int32_t pid, const char *name)
{
	return open(procfs_path(pid, "%s", name).text, O_RDONLY | O_CLOEXEC);
}

/* Returns true if the peer's user owns this user namespace, and its parent is the peer's. */
static bool is_owned_child(int namespace, const struct peer *peer)
{
	uid_t owner;
	int parent;
	bool is_child;

	if (ioctl(namespace, NS_GET_OWNER_UID, &owner) < 0 || owner != peer->uid)
		return false;
	parent = ioctl(namespace, NS_GET_PARENT);
	is_child = parent >= 0 && namespace_is_same(procfs_path(peer->pid, "ns/user").text,
						    procfs_own_fd(parent).text);
	close_fd(&parent);
	return is_child;
}

static bool capabilities_permit(const struct peer *peer, const struct credentials *of_peer,
				int32_t pid, const struct credentials *of_process)
{
	int namespace;
	bool is_child;

	if (namespace_is_same(procfs_path(peer->pid, "ns/user").text,
			      procfs_path(pid, "ns/user").text))
		return (of_process->permitted & ~of_peer->permitted) == 0;
	namespace = open_namespace(pid, "ns/user");
	is_child = namespace >= 0 && is_owned_child(namespace, peer);
	close_fd(&namespace);
	return is_child;
}

/* Pid namespaces are nested at most so deep (kernel/pid_namespace.c). */
#define NESTED_MAX 32

/* Returns true if the pid namespace of process pid is that of the peer, or below it. */
static bool is_below(const struct peer *peer, int32_t pid)
{
	int at = open_namespace(pid, "ns/pid");
	bool found = false;

	for (int n = 0; at >= 0 && !found && n <= NESTED_MAX; n++) {
		int parent = -1;

		found = namespace_is_same(procfs_path(peer->pid, "ns/pid").text,
					  procfs_own_fd(at).text);
		if (!found)
			parent = ioctl(at, NS_GET_PARENT);
		close_fd(&at);
		at = parent;
	}
	close_fd(&at);
	return found;
}

bool may_trace(const struct peer *peer, int32_t pid)
{
	struct credentials of_peer, of_process;

	return credentials_read(pid, &of_process) && are_all(of_process.ids.uid, peer->uid) &&
	       are_all(of_process.ids.gid, peer->gid) && of_process.files_uid == peer->uid &&
	       peer->pid > 0 && credentials_read(peer->pid, &of_peer) && is_below(peer, pid) &&
	       capabilities_permit(peer, &of_peer, pid, &of_process) &&
	       /* Last: then the credentials above were the peer's. */
	       peer_speaks(peer);
}
