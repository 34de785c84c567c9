#include "daemon/unwind/thread_keys.h"

#include <stdlib.h>

#include "lib/base/array.h"

void thread_keys_init(struct thread_keys *k, bool shows_pointers, uint64_t seed)
{
	*k = (struct thread_keys){.shows_pointers = shows_pointers};
	table_init(&k->by_tid, seed);
	table_init(&k->by_pointer, seed);
}

void thread_keys_fini(struct thread_keys *k)
{
	if (k == NULL)
		return;
	free(k->list);
	table_fini(&k->by_tid);
	table_fini(&k->by_pointer);
	thread_keys_init(k, k->shows_pointers, k->by_tid.seed);
}

static struct thread_key *find(const struct thread_keys *k, const struct table *t, uint64_t what)
{
	uint32_t at;

	return table_get(t, what, &at) ? &k->list[at] : NULL;
}

static int add_thread(struct thread_keys *k, uint32_t tid, struct thread_key **ret)
{
	int r = array_grow(k->list, k->n, k->cap);

	if (r == 0)
		r = table_put(&k->by_tid, tid, (uint32_t)k->n);
	if (r < 0)
		return r;
	*ret = &k->list[k->n++];
	**ret = (struct thread_key){.tid = tid};
	return 0;
}

static void end_thread(struct thread_keys *k, struct thread_key *t)
{
	if (t->tid != 0)
		(void)table_remove(&k->by_tid, t->tid);
	t->tid = 0;
}

/* Sets the pointer. A thread that had the same pointer before has ended. */
static int set_pointer(struct thread_keys *k, struct thread_key *t, uint64_t pointer)
{
	struct thread_key *before = find(k, &k->by_pointer, pointer);
	int r = table_put(&k->by_pointer, pointer, (uint32_t)(t - k->list));

	if (r < 0)
		return r;
	if (t->pointer != 0)
		(void)table_remove(&k->by_pointer, t->pointer);
	t->pointer = pointer;
	if (before != NULL) {
		end_thread(k, before);
		before->pointer = 0;
		t->key = before->key;
	}
	return 0;
}

int thread_keys_assign(struct thread_keys *k, uint32_t tid, uint64_t pointer,
		       struct thread_key_change *ret)
{
	struct thread_key *t;
	uint32_t before;
	int r = 0;

	*ret = (struct thread_key_change){.key = tid};
	if (!k->shows_pointers)
		return 0;
	t = find(k, &k->by_tid, tid);
	if (t == NULL)
		r = add_thread(k, tid, &t);
	if (r < 0)
		return r;
	before = t->key;
	if (pointer != 0 && pointer != t->pointer)
		r = set_pointer(k, t, pointer);
	if (r < 0)
		return r;
	if (t->key == 0)
		t->key = ++k->last;
	ret->key = t->key;
	ret->old_key = t->key != before ? before : 0;
	ret->id = t->pointer != 0 ? t->pointer : tid;
	return 0;
}

uint32_t thread_keys_of(const struct thread_keys *k, uint32_t tid)
{
	const struct thread_key *t;

	if (!k->shows_pointers)
		return tid;
	t = find(k, &k->by_tid, tid);
	return t == NULL ? 0 : t->key;
}

void thread_keys_end(struct thread_keys *k, uint32_t tid)
{
	struct thread_key *t = find(k, &k->by_tid, tid);

	if (t != NULL)
		end_thread(k, t);
}

void thread_keys_end_all(struct thread_keys *k)
{
	for (size_t i = 0; i < k->n; i++)
		end_thread(k, &k->list[i]);
}

static void forget_all(struct thread_keys *k)
{
	table_clear(&k->by_tid);
	table_clear(&k->by_pointer);
	k->n = 0;
}

/* Appends t to the list, which has room for it. */
static int append(struct thread_keys *k, const struct thread_key *t)
{
	const uint32_t at = (uint32_t)k->n;
	int r = 0;

	k->list[k->n++] = *t;
	if (t->tid != 0)
		r = table_put(&k->by_tid, t->tid, at);
	if (r == 0 && t->pointer != 0)
		r = table_put(&k->by_pointer, t->pointer, at);
	return r;
}

int thread_keys_copy(struct thread_keys *k, const struct thread_keys *from)
{
	int r = 0;

	thread_keys_init(k, from->shows_pointers, from->by_tid.seed);
	if (from->n == 0)
		return 0;
	k->list = calloc(from->n, sizeof(*k->list));
	if (k->list == NULL)
		return -ENOMEM;
	k->cap = from->n;
	k->last = from->last;
	for (size_t i = 0; i < from->n && r == 0; i++)
		r = append(k, &from->list[i]);
	return r;
}

int thread_keys_next(struct thread_keys *k)
{
	size_t n = k->n;
	int r = 0;

	forget_all(k);
	for (size_t i = 0; i < n && r == 0; i++) {
		struct thread_key t = k->list[i];

		if (t.tid == 0 && t.is_old)
			continue;
		t.is_old = t.tid == 0;
		r = append(k, &t);
	}
	if (r < 0)
		forget_all(k);
	return r;
}
