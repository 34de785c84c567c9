// A multi-threaded C++ program: four workers, "worker 0" to "worker 3", take
// jobs from a queue that the main thread fills. Each job does one of three
// things, in turn: sorting (templates of the standard library), walking a tree
// (recursion, virtual calls), and throwing and catching an exception.
//
// Usage: threads [SECONDS]; 0 or nothing: until it is killed. Says "ready PID"
// when all threads run, and at the end "jobs N": those that were done.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <unistd.h>

namespace demo {

// A bounded queue: take() waits while it is empty, put() while it is full.
template <typename T> class Queue
{
      public:
	explicit Queue(std::size_t limit) : limit(limit)
	{
	}

	void put(T item)
	{
		std::unique_lock<std::mutex> lock(mutex);
		changed.wait(lock, [this] { return items.size() < limit; });
		items.push_back(std::move(item));
		changed.notify_all();
	}

	T take()
	{
		std::unique_lock<std::mutex> lock(mutex);
		changed.wait(lock, [this] { return !items.empty(); });
		T item = std::move(items.front());
		items.pop_front();
		changed.notify_all();
		return item;
	}

      private:
	const std::size_t limit;
	std::mutex mutex;
	std::condition_variable changed;
	std::deque<T> items;
};

class Job
{
      public:
	virtual ~Job() = default;
	virtual std::uint64_t run(std::uint64_t seed) = 0;
};

class SortJob : public Job
{
      public:
	std::uint64_t run(std::uint64_t seed) override;
};

__attribute__((noinline)) std::uint64_t SortJob::run(std::uint64_t seed)
{
	std::vector<std::uint64_t> numbers(20000);

	for (auto &n : numbers)
		n = seed = seed * 6364136223846793005u + 1442695040888963407u;
	std::sort(numbers.begin(), numbers.end());
	return numbers[numbers.size() / 2];
}

// A binary tree of a given depth; walk() stands on the stack once a level.
class Tree
{
      public:
	explicit Tree(int depth) : value(static_cast<unsigned>(depth))
	{
		if (depth > 0) {
			left = std::make_unique<Tree>(depth - 1);
			right = std::make_unique<Tree>(depth - 1);
		}
	}

	__attribute__((noinline)) std::uint64_t walk() const
	{
		std::uint64_t sum = value;

		if (left)
			sum += left->walk();
		if (right)
			sum ^= right->walk() * 31;
		return sum;
	}

      private:
	std::uint64_t value;
	std::unique_ptr<Tree> left, right;
};

class TreeJob : public Job
{
      public:
	std::uint64_t run(std::uint64_t seed) override;
};

__attribute__((noinline)) std::uint64_t TreeJob::run(std::uint64_t seed)
{
	return Tree(12).walk() + seed;
}

class ThrowJob : public Job
{
      public:
	std::uint64_t run(std::uint64_t seed) override;

      private:
	static void dive(std::uint64_t depth);
};

__attribute__((noinline)) void ThrowJob::dive(std::uint64_t depth)
{
	std::string held(depth, 'x'); // has to be cleaned up on the way

	if (depth == 0)
		throw std::runtime_error("ground");
	dive(depth - 1);
	asm volatile("" : : "r"(held.data())); // no tail call
}

__attribute__((noinline)) std::uint64_t ThrowJob::run(std::uint64_t seed)
{
	for (int i = 0; i < 100; i++) {
		try {
			dive(20);
		} catch (const std::runtime_error &e) {
			seed += static_cast<unsigned char>(e.what()[0]);
		}
	}
	return seed;
}

class Pool
{
      public:
	explicit Pool(int n)
	{
		for (int i = 0; i < n; i++) {
			threads.emplace_back([this] { work(); });
			pthread_setname_np(
				threads.back().native_handle(),
				("worker " + std::to_string(i)).c_str());
		}
		while (running < n)
			std::this_thread::yield();
	}

	// Waits for what has been submitted.
	~Pool()
	{
		for (std::size_t i = 0; i < threads.size(); i++)
			jobs.put(nullptr);
		for (auto &thread : threads)
			thread.join();
	}

	void submit(std::unique_ptr<Job> job)
	{
		jobs.put(std::move(job));
	}

	std::uint64_t n_done() const
	{
		return done;
	}

      private:
	__attribute__((noinline)) void work()
	{
		std::uint64_t seed = 1;

		running++;
		while (auto job = jobs.take()) {
			seed = job->run(seed);
			done++;
		}
	}

	Queue<std::unique_ptr<Job>> jobs{16};
	std::atomic<int> running{0};
	std::atomic<std::uint64_t> done{0};
	std::vector<std::thread> threads;
};

} // namespace demo

int main(int argc, char **argv)
{
	using clock = std::chrono::steady_clock;
	const long seconds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 0;
	const auto end = clock::now() + std::chrono::seconds(seconds);
	demo::Pool pool(4);

	std::printf("ready %ld\n", static_cast<long>(getpid()));
	std::fflush(stdout);
	for (int i = 0; seconds == 0 || clock::now() < end; i++) {
		switch (i % 3) {
		case 0:
			pool.submit(std::make_unique<demo::SortJob>());
			break;
		case 1:
			pool.submit(std::make_unique<demo::TreeJob>());
			break;
		default:
			pool.submit(std::make_unique<demo::ThrowJob>());
		}
	}
	std::printf("jobs %llu\n",
		    static_cast<unsigned long long>(pool.n_done()));
}
