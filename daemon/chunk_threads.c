#include "daemon/chunk_threads.h"

static int name(struct thread_keys *k, struct aggregate *a, uint32_t tid,
		uint64_t pointer, uint64_t time_ns, uint32_t *ret_key)
{
	struct thread_name name;
	int r = thread_keys_take(k, tid, pointer, &name);

	if (r == 0 && name.left != 0)
		r = aggregate_exit(a, name.left, time_ns);
	if (r == 0)
		r = aggregate_thread_id(a, name.key, name.id);
	*ret_key = name.key;
	return r;
}

int chunk_threads_take(struct thread_keys *k, struct aggregate *a,
		       const struct record_thread *record, uint64_t time_ns)
{
	uint32_t key;
	int r = name(k, a, record->h.tid, record->pointer, time_ns, &key);

	if (r < 0)
		return r;
	return aggregate_thread(a, key, record->is_main, record->comm,
				sizeof(record->comm));
}

int chunk_threads_find(struct thread_keys *k, struct aggregate *a, uint32_t tid,
		       uint64_t time_ns, uint32_t *ret_key)
{
	*ret_key = thread_keys_of(k, tid);
	return *ret_key != 0 ? 0 : name(k, a, tid, 0, time_ns, ret_key);
}

/* Of a thread whose number is another's by now, nothing is to be said. */
int chunk_threads_lose(struct thread_keys *k, struct aggregate *a,
		       const struct record *record)
{
	const uint32_t key = thread_keys_of(k, record->tid);

	if (key == 0)
		return 0;
	if (record->ring.type == RECORD_MISSED)
		return aggregate_missed(a, key, record->time_ns);
	thread_keys_leave(k, record->tid);
	return aggregate_exit(a, key, record->time_ns);
}

int chunk_threads_wait(struct thread_keys *k, struct aggregate *a,
		       const struct record *record, bool cpu_only)
{
	const uint32_t key = thread_keys_of(k, record->tid);

	if (key == 0)
		return 0;
	return cpu_only ? aggregate_missed(a, key, record->time_ns)
			: aggregate_waiting(a, key, record->time_ns);
}

int chunk_threads_exit(struct thread_keys *k, struct aggregate *a,
		       uint64_t time_ns)
{
	thread_keys_leave_all(k);
	return aggregate_exit_all(a, time_ns);
}
