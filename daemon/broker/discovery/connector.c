#include "daemon/broker/discovery/connector.h"

#include <arpa/inet.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The socket is read ten times a second: this is room for some 50,000 forks a second. */
#define BUFFER_BYTES (4 << 20)

/* Limits of one connector_read(): further messages wait for the next turn. */
#define BATCHES_MAX 64
#define BATCH	    64

/* Bytes. The kernel's messages have 76; a later kernel may add fields. */
#define MESSAGE_MAX 256

/*
 * Offsets in the message: the struct proc_event, and the part of it that depends on the type of
 * event.
 */
#define EVENT (sizeof(struct nlmsghdr) + sizeof(struct cn_msg))
#define DATA  (EVENT + offsetof(struct proc_event, event_data))

/*
 * Instructions of the filter. LOAD reads a word as big-endian. The message is in host byte
 * order, so that IF compares with htonl().
 */
#define LOAD(offset)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offset))
#define TAKE	      BPF_STMT(BPF_RET | BPF_K, UINT32_MAX)
#define DROP	      BPF_STMT(BPF_RET | BPF_K, 0)
#define TO_X	      BPF_STMT(BPF_MISC | BPF_TAX, 0)
#define IF_X(yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, (yes), (no))

/*
 * Lets pass the kernel's answer, every exec, and the forks and changes of ids or name of
 * processes. An event is about a process and not about a thread if the pid in it is the tgid.
 */
static int set_filter(int fd)
{
#define IF(what, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(what), (yes), (no))
	struct sock_filter code[] = {
		LOAD(EVENT + offsetof(struct proc_event, what)),
		IF(0, 5, 0), /* PROC_EVENT_NONE: the kernel's answer */
		IF(PROC_EVENT_EXEC, 4, 0),
		IF(PROC_EVENT_UID, 9, 0),
		IF(PROC_EVENT_GID, 8, 0),
		IF(PROC_EVENT_COMM, 7, 0),
		IF(PROC_EVENT_FORK, 1, 10),
		TAKE,
		/* child_pid, child_tgid */
		LOAD(DATA + 2 * sizeof(uint32_t)),
		TO_X,
		LOAD(DATA + 3 * sizeof(uint32_t)),
		IF_X(0, 5),
		TAKE,
		/* process_pid, process_tgid */
		LOAD(DATA),
		TO_X,
		LOAD(DATA + sizeof(uint32_t)),
		IF_X(1, 0),
		DROP,
		TAKE,
	};
#undef IF
	const struct sock_fprog program = {
		.len = array_size(code),
		.filter = code,
	};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno
											   : 0;
}

static int ask(int fd, enum proc_cn_mcast_op op)
{
	struct {
		struct nlmsghdr netlink;
		uint8_t rest[sizeof(struct cn_msg) + sizeof(op)];
	} m = {
		.netlink = {.nlmsg_len = EVENT + sizeof(op),
			    .nlmsg_type = NLMSG_DONE,
			    .nlmsg_pid = 0},
	};
	const struct cn_msg connector = {
		.id = {.idx = CN_IDX_PROC, .val = CN_VAL_PROC},
		.len = sizeof(op),
	};

	memcpy(m.rest, &connector, sizeof(connector));
	memcpy(m.rest + sizeof(connector), &op, sizeof(op));
	return send(fd, &m, EVENT + sizeof(op), 0) < 0 ? -errno : 0;
}

static int set_up(int fd)
{
	const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
	const int bytes = BUFFER_BYTES;
	int r = set_filter(fd);

	if (r < 0)
		return r;
	/*
	 * SO_RCVBUFFORCE may exceed net.core.rmem_max. If it fails, the buffer stays small; lost
	 * events are reported as ENOBUFS.
	 */
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return ask(fd, PROC_CN_MCAST_LISTEN);
}

int connector_open(int *ret_fd)
{
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
	int r;

	if (fd < 0)
		return -errno;
	r = set_up(fd);
	if (r < 0)
		close_fd(&fd);
	else
		*ret_fd = fd;
	return r;
}

/*
 * Before Linux 6.6 the kernel counts the broker as a listener until it gets
 * PROC_CN_MCAST_IGNORE, even if the socket is closed.
 */
void connector_close(int *fd)
{
	if (*fd >= 0)
		(void)!ask(*fd, PROC_CN_MCAST_IGNORE);
	close_fd(fd);
}

bool connector_parse(const void *message, size_t n, struct connector_event *ret)
{
	const uint8_t *bytes = message;
	struct nlmsghdr netlink;
	struct cn_msg connector;
	struct proc_event event = {0};

	if (n < DATA)
		return false;
	memcpy(&netlink, bytes, sizeof(netlink));
	memcpy(&connector, bytes + sizeof(netlink), sizeof(connector));
	if (netlink.nlmsg_type != NLMSG_DONE || netlink.nlmsg_len > n ||
	    connector.id.idx != CN_IDX_PROC || connector.id.val != CN_VAL_PROC)
		return false;
	memcpy(&event, bytes + EVENT, min_u64(sizeof(event), n - EVENT));
	*ret = (struct connector_event){.time_ns = event.timestamp_ns};
	/* No switch: -Wswitch-enum would want a case for every event of the kernel. */
	if (event.what == PROC_EVENT_NONE) {
		ret->what = CONNECTOR_ANSWER;
		return event.event_data.ack.err == 0;
	}
	if (event.what == PROC_EVENT_FORK) {
		ret->what = CONNECTOR_FORK;
		ret->pid = event.event_data.fork.child_tgid;
		return event.event_data.fork.child_pid == ret->pid;
	}
	ret->what = event.what == PROC_EVENT_EXEC ? CONNECTOR_EXEC : CONNECTOR_CHANGE;
	/* Each of these events begins with process_pid and process_tgid. */
	ret->pid = event.event_data.exec.process_tgid;
	if (event.what == PROC_EVENT_EXEC)
		return true;
	return (event.what == PROC_EVENT_UID || event.what == PROC_EVENT_GID ||
		event.what == PROC_EVENT_COMM) &&
	       event.event_data.id.process_pid == ret->pid;
}

static void take(connector_fn fn, void *ctx, const struct mmsghdr *m)
{
	const struct sockaddr_nl *from = m->msg_hdr.msg_name;
	struct connector_event event;

	/*
	 * nl_pid 0 is the kernel. Other processes can send to the socket, too; those messages
	 * are ignored.
	 */
	if (m->msg_hdr.msg_namelen == sizeof(*from) && from->nl_pid == 0 &&
	    !(m->msg_hdr.msg_flags & MSG_TRUNC) &&
	    connector_parse(m->msg_hdr.msg_iov->iov_base, m->msg_len, &event))
		fn(ctx, &event);
}

int connector_read(int fd, connector_fn fn, void *ctx)
{
	static uint8_t bytes[BATCH][MESSAGE_MAX];
	struct sockaddr_nl from[BATCH];
	struct iovec parts[BATCH];
	struct mmsghdr m[BATCH];
	bool lost = false;

	for (int batch = 0; batch < BATCHES_MAX; batch++) {
		int n;

		for (size_t i = 0; i < BATCH; i++) {
			parts[i] = (struct iovec){bytes[i], sizeof(bytes[i])};
			m[i] = (struct mmsghdr){.msg_hdr = {.msg_name = &from[i],
							    .msg_namelen = sizeof(from[i]),
							    .msg_iov = &parts[i],
							    .msg_iovlen = 1}};
		}
		n = recvmmsg(fd, m, BATCH, MSG_DONTWAIT, NULL);
		if (n < 0 && errno != ENOBUFS)
			break;
		lost |= n < 0;
		for (int i = 0; i < n; i++)
			take(fn, ctx, &m[i]);
		if (n >= 0 && n < BATCH)
			break;
	}
	return lost ? -ENOBUFS : 0;
}
