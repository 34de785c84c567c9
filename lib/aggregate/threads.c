#include "lib/aggregate/threads.h"

#include <stdlib.h>

#include "lib/base/array.h"
#include "proto/profile.h"

void threads_init(struct threads *t, uint64_t hash_seed)
{
	*t = (struct threads){0};
	table_init(&t->by_tid, hash_seed);
}

void threads_fini(struct threads *t)
{
	if (t == NULL)
		return;
	free(t->list);
	table_fini(&t->by_tid);
	threads_init(t, t->by_tid.seed);
}

struct thread *threads_find(const struct threads *t, uint32_t tid)
{
	uint32_t index;

	return table_get(&t->by_tid, tid, &index) ? &t->list[index] : NULL;
}

int threads_get(struct threads *t, uint32_t tid, struct thread **ret)
{
	int r;

	*ret = threads_find(t, tid);
	if (*ret != NULL)
		return 0;
	if (array_grow(t->list, t->n, t->cap) < 0)
		return -ENOMEM;
	r = table_put(&t->by_tid, tid, (uint32_t)t->n);
	if (r < 0)
		return r;
	*ret = &t->list[t->n++];
	**ret = (struct thread){
		.tid = tid,
		.node = PROFILE_NONE,
		.last = PROFILE_NONE,
		.carry = PROFILE_NONE,
	};
	return 0;
}

int threads_drop_exited(struct threads *t)
{
	size_t kept = 0;

	table_clear(&t->by_tid);
	for (size_t i = 0; i < t->n; i++) {
		int r;

		if (t->list[i].exited && !t->list[i].ahead)
			continue;
		t->list[kept] = t->list[i];
		r = table_put(&t->by_tid, t->list[kept].tid, (uint32_t)kept);
		if (r < 0)
			return r;
		kept++;
	}
	t->n = kept;
	return 0;
}
