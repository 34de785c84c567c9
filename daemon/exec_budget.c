#include "daemon/exec_budget.h"

#include "daemon/log.h"

#define FULL_NS (EXEC_BUDGET_BURST * EXEC_BUDGET_EVERY_NS)

void exec_budget_init(struct exec_budget *b)
{
	*b = (struct exec_budget){.left_ns = FULL_NS};
}

bool exec_budget_take(struct exec_budget *b, int32_t pid, uint64_t now_ns)
{
	if (now_ns > b->time_ns) {
		b->left_ns =
			min_u64(b->left_ns + (now_ns - b->time_ns), FULL_NS);
		b->time_ns = now_ns;
	}
	if (b->left_ns >= EXEC_BUDGET_EVERY_NS) {
		b->left_ns -= EXEC_BUDGET_EVERY_NS;
		return true;
	}
	if (b->held_back++ == 0)
		log_warning("process %d executes one program after another: "
			    "of chunks that end by that one in %llu s is kept, "
			    "the others are discarded",
			    pid,
			    (unsigned long long)(EXEC_BUDGET_EVERY_NS /
						 NS_PER_SEC));
	return false;
}

void exec_budget_begin(struct exec_budget *b, uint64_t time_ns)
{
	b->began_ns = time_ns;
}

void exec_budget_check(struct exec_budget *b, int32_t pid, uint64_t now_ns)
{
	if (b->held_back == 0 || now_ns < b->began_ns + EXEC_BUDGET_EVERY_NS)
		return;
	log_warning("process %d stays the same program: %llu chunk%s of those "
		    "before it %s discarded",
		    pid, (unsigned long long)b->held_back,
		    b->held_back == 1 ? "" : "s",
		    b->held_back == 1 ? "was" : "were");
	b->held_back = 0;
}
