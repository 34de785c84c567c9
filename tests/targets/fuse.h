/*
 * What a target says to the kernel that is a FUSE server itself (fuse(4)): its
 * file system has one file.
 */
#ifndef TESTS_TARGETS_FUSE_H
#define TESTS_TARGETS_FUSE_H

#include <linux/fuse.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "target.h"

/* The most that is answered at once: a page. */
#define FUSE_REPLY_MAX 4096

/* To a request of this number; a failure ends the process. */
static inline void fuse_reply(int fd, uint64_t unique, int error,
			      const void *body, size_t size)
{
	char out[sizeof(struct fuse_out_header) + FUSE_REPLY_MAX];
	const struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + size),
		.error = error,
		.unique = unique,
	};

	memcpy(out, &header, sizeof(header));
	if (size > 0)
		memcpy(out + sizeof(header), body, size);
	/* ENOENT: the request was taken back. */
	if (write(fd, out, header.len) < 0 && errno != ENOENT)
		_exit(1);
}

enum { FUSE_FILE = 2 };

static inline struct fuse_attr fuse_attributes(uint64_t node, uint64_t size)
{
	return (struct fuse_attr){
		.ino = node,
		.size = size,
		.mode = node == FUSE_FILE ? S_IFREG | 0755 : S_IFDIR | 0755,
		.nlink = 1,
		.blksize = FUSE_REPLY_MAX,
	};
}

/* As a server does that keeps nobody waiting; its file has so many bytes. */
static inline void fuse_answer(int fd, const struct fuse_in_header *in,
			       uint64_t size)
{
	const struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
					   .minor = 31,
					   .max_write = FUSE_REPLY_MAX};
	const struct fuse_entry_out entry = {
		.nodeid = FUSE_FILE, .attr = fuse_attributes(FUSE_FILE, size)};
	const struct fuse_attr_out attr = {
		.attr = fuse_attributes(in->nodeid, size)};
	const struct fuse_open_out open_out = {.fh = 0};

	switch (in->opcode) {
	case FUSE_INIT:
		fuse_reply(fd, in->unique, 0, &init, sizeof(init));
		return;
	case FUSE_LOOKUP:
		fuse_reply(fd, in->unique, 0, &entry, sizeof(entry));
		return;
	case FUSE_GETATTR:
		fuse_reply(fd, in->unique, 0, &attr, sizeof(attr));
		return;
	case FUSE_OPEN:
		fuse_reply(fd, in->unique, 0, &open_out, sizeof(open_out));
		return;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		fuse_reply(fd, in->unique, 0, NULL, 0);
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	default:
		fuse_reply(fd, in->unique, -ENOSYS, NULL, 0);
		return;
	}
}

/* Mounts it where only this process sees it; returns the server's device. */
static inline int fuse_mount(const char *dir, const char *options)
{
	const char *name = program_invocation_short_name;
	const int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char text[128];

	need(device >= 0 && unshare(CLONE_NEWNS) == 0 &&
	     mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	(void)snprintf(text, sizeof(text),
		       "fd=%d,rootmode=40000,user_id=0,group_id=0%s", device,
		       options);
	need(mount(name, dir, "fuse", MS_NOSUID | MS_NODEV, text) == 0);
	return device;
}

#endif
