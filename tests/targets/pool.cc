// Tasks of some microseconds, handed to a pool of two threads; their results come as futures.
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

using Task = std::packaged_task<unsigned long()>;

__attribute__((noinline)) static unsigned long work(unsigned long turns)
{
	unsigned long sum = 0;

	for (volatile unsigned long i = 0; i < turns; i = i + 1)
		sum += i;
	return sum;
}

class Pool
{
      public:
	explicit Pool(int threads)
	{
		for (int i = 0; i < threads; i++)
			threads_.emplace_back([this] { run(); });
	}

	std::future<unsigned long> add(unsigned long turns)
	{
		Task task([turns] { return work(turns); });
		auto result = task.get_future();
		{
			std::lock_guard<std::mutex> lock(mutex_);
			tasks_.push_back(std::move(task));
		}
		added_.notify_one();
		return result;
	}

      private:
	[[noreturn]] void run()
	{
		for (;;)
			take()();
	}

	Task take()
	{
		std::unique_lock<std::mutex> lock(mutex_);

		added_.wait(lock, [this] { return !tasks_.empty(); });
		Task task = std::move(tasks_.front());
		tasks_.pop_front();
		return task;
	}

	std::mutex mutex_;
	std::condition_variable added_;
	std::deque<Task> tasks_;
	std::vector<std::thread> threads_;
};

int main()
{
	Pool pool(2);

	std::printf("ready %d\n", getpid());
	std::fflush(stdout);
	for (;;)
		pool.add(1000).get();
}
