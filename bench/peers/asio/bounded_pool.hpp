// SPDX-License-Identifier: MIT
//
// A thread_pool's backlog has no limit; a semaphore around `post` gives it one, as a user would. It
// blocks the thread that submits, where weir suspends a fiber.
#pragma once

#include <cstddef>
#include <semaphore>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

namespace bench {

class bounded_pool {
 public:
  explicit bounded_pool(std::size_t workers) : pool_(workers) {}

  template <typename Job>
  void submit(Job job) {
    room_.acquire();
    boost::asio::post(pool_, [this, job = std::move(job)]() mutable {
      job();
      room_.release();
    });
  }

 private:
  std::counting_semaphore<> room_{1024};
  boost::asio::thread_pool pool_;
};

}  // namespace bench
