#include "lib/base/loop.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>

struct loop_source {
	int fd;		 /* -1: removed; the struct is freed after the round */
	uint32_t events; /* EPOLLIN or EPOLLOUT */
	loop_fn fn;
	void *ctx;
	bool paused;
	struct loop_source *next_paused;
	struct loop_source *next_removed;
};

struct loop {
	int epoll_fd;
	struct loop_source *paused_sources;
	struct loop_source *removed;
};

/* The most events of one round. Further events come in the next round. */
#define LOOP_EVENTS 64

int loop_new(struct loop **ret)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0) {
		int r = -errno;

		free(l);
		return r;
	}
	*ret = l;
	return 0;
}

static void free_removed(struct loop *l)
{
	while (l->removed != NULL) {
		struct loop_source *source = l->removed;

		l->removed = source->next_removed;
		free(source);
	}
}

void loop_free(struct loop *l)
{
	if (l == NULL)
		return;
	free_removed(l);
	close_fd(&l->epoll_fd);
	free(l);
}

static int add_source(struct loop *l, int fd, uint32_t events, loop_fn fn, void *ctx,
		      struct loop_source **ret_source)
{
	struct loop_source *source = calloc(1, sizeof(*source));
	struct epoll_event event = {.events = events, .data.ptr = source};

	if (source == NULL)
		return -ENOMEM;
	*source = (struct loop_source){.fd = fd, .events = events, .fn = fn, .ctx = ctx};
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		int r = -errno;

		free(source);
		return r;
	}
	*ret_source = source;
	return 0;
}

int loop_add(struct loop *l, int fd, loop_fn fn, void *ctx, struct loop_source **ret_source)
{
	return add_source(l, fd, EPOLLIN, fn, ctx, ret_source);
}

int loop_add_writer(struct loop *l, int fd, loop_fn fn, void *ctx, struct loop_source **ret_source)
{
	return add_source(l, fd, EPOLLOUT, fn, ctx, ret_source);
}

static void unlink_paused(struct loop *l, struct loop_source *s)
{
	struct loop_source **at = &l->paused_sources;

	while (*at != s)
		at = &(*at)->next_paused;
	*at = s->next_paused;
	s->paused = false;
}

/*
 * EPOLL_CTL_MOD needs no memory, of which the process may be short. The kernel reports a closed
 * peer whatever the event mask is (epoll_ctl(2)); EPOLLET limits that to once.
 */
void loop_pause(struct loop *l, struct loop_source *s)
{
	struct epoll_event event = {.events = EPOLLET, .data.ptr = s};

	if (s->paused)
		return;
	(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, s->fd, &event);
	s->paused = true;
	s->next_paused = l->paused_sources;
	l->paused_sources = s;
}

void loop_resume_source(struct loop *l, struct loop_source *s)
{
	struct epoll_event event = {.events = s->events, .data.ptr = s};

	if (!s->paused)
		return;
	unlink_paused(l, s);
	(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, s->fd, &event);
}

void loop_resume(struct loop *l)
{
	while (l->paused_sources != NULL)
		loop_resume_source(l, l->paused_sources);
}

void loop_remove(struct loop *l, struct loop_source **source)
{
	struct loop_source *s = *source;

	if (s == NULL)
		return;
	if (s->paused)
		unlink_paused(l, s);
	(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	/* The struct is freed later, because an event of this round may still point to it. */
	s->fd = -1;
	s->next_removed = l->removed;
	l->removed = s;
	*source = NULL;
}

int loop_run_once(struct loop *l, int timeout_ms)
{
	struct epoll_event events[LOOP_EVENTS];
	int n = epoll_wait(l->epoll_fd, events, LOOP_EVENTS, timeout_ms);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		struct loop_source *source = events[i].data.ptr;

		if (source->fd >= 0 && !source->paused)
			source->fn(source->ctx);
	}
	free_removed(l);
	return 0;
}
