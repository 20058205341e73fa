// SPDX-License-Identifier: MIT
// socket and its loop: several waits at once, costs, fairness, other loops, dumps.
#include <memory>
#include <sstream>

#include "io_support.hpp"
#include "support/allocations.hpp"

using namespace weir_test;

TEST(socket, hangup_is_seen_although_nobody_reads) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    EXPECT_TRUE(holds<weir::timeout_error>(co_await error_of(weir::with_timeout(2ms, c.hangup()))));
    peer.send("unread");
    peer.end_writing();
    co_await c.hangup();
    EXPECT_EQ(co_await read_all(c), "unread");
    co_await c.hangup();
  });
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    peer.reset();
    co_await c.hangup();
  });
}

TEST(socket, reader_writer_and_hangup_may_wait_at_the_same_time) {
  auto program = []() -> task<> {
    socket_pair p = co_await connected_pair();
    const std::string big(4 << 20, 'x');
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto gone = [&]() -> task<> { co_await p.a.hangup(); };
      auto hangup = s.spawn(gone);
      auto answer = s.spawn(read_n(p.a, 3));
      auto write = [&]() -> task<> { co_await p.a.write_all(big); };
      auto wrote = s.spawn(write);
      co_await weir::sleep(1ms);
      co_await p.b.write_all("yes");
      EXPECT_EQ(co_await answer, "yes");
      EXPECT_EQ((co_await read_n(p.b, big.size())).size(), big.size());
      co_await wrote;
      EXPECT_FALSE(hangup.done());
      p.b.close();
      co_await hangup;
    });
  };
  weir::run(program);
}

TEST(socket, an_operation_allocates_nothing_once_warm) {
  auto program = []() -> task<> {
    socket_pair p = co_await connected_pair();
    std::array<std::byte, 64> buffer{};
    long counted = -1;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto echo = [&]() -> task<> {
        std::array<std::byte, 64> own{};
        while (auto n = co_await p.b.read_some(own))
          co_await p.b.write_all(std::span(own).first(n));
      };
      s.spawn(echo);
      for (int i = 0; i < 200; ++i) {
        if (i == 100) test_support::begin_to_count();
        co_await p.a.write_all("0123456789");
        co_await p.a.read_exactly(std::span(buffer).first(10));
      }
      counted = test_support::end_count();
      p.a.shutdown_write();
    });
    EXPECT_EQ(counted, 0);
  };
  weir::run(program);
}

TEST(socket, on_another_loop_it_is_refused) {
  weir::loop_thread other;
  auto program = [&]() -> task<> {
    socket_pair p = co_await connected_pair();
    auto use = [&]() -> task<std::exception_ptr> {
      std::string into(4, '.');
      co_return co_await attempt([&] { return p.a.read_some(bytes_of(into)); });
    };
    EXPECT_EQ(code_of(co_await weir::on(other, use)), errc::wrong_loop);
  };
  weir::run(program);
}

TEST(socket, one_that_outlives_its_loop_serves_the_next) {
  plain_socket peer;
  io::socket kept;
  auto first = [&]() -> task<> {
    auto l = co_await io::listen();
    peer = plain_socket::dial(l.port());
    kept = co_await l.accept();
    std::string into(4, '.');
    co_await weir::settle(weir::with_timeout(1ms, kept.read_some(bytes_of(into))));
  };
  weir::run(first);
  peer.send("later");
  auto second = [&]() -> task<std::string> { co_return co_await read_n(kept, 5); };
  EXPECT_EQ(weir::run(second), "later");
  auto third = [&]() -> task<std::string> {
    co_return co_await weir::with_scope([&](weir::scope& s) -> task<std::string> {
      auto read = s.spawn(read_n(kept, 3));
      co_await weir::yield();
      peer.send("end");
      co_return co_await std::move(read);
    });
  };
  EXPECT_EQ(weir::run(third), "end");
}

TEST(socket, fibers_that_always_find_data_do_not_starve_others) {
  auto program = []() -> task<> {
    socket_pair p = co_await connected_pair();
    bool stop = false;
    long reads = 0;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto feed = [&]() -> task<> {
        const std::string piece(1000, 'x');
        while (!stop) co_await p.a.write_all(piece);
        p.a.shutdown_write();
      };
      auto eat = [&]() -> task<> {
        std::string one(1, '.');
        while (co_await p.b.read_some(bytes_of(one)) > 0 && !stop) ++reads;
        p.b.close();
      };
      s.spawn(feed);
      s.spawn(eat);
      for (int turn = 0; turn < 50; ++turn) co_await weir::yield();
      stop = true;
      s.cancel();
    });
    EXPECT_GT(reads, 0);
  };
  EXPECT_TRUE(thrown_by([&] {
                weir::run(program);
                return 0;
              }) == nullptr);
}

TEST(socket, a_loop_that_always_has_ready_fibers_still_sees_its_io) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    bool done = false;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto spin = [&]() -> task<> {
        while (!done) co_await weir::yield();
      };
      s.spawn(spin);
      auto read = s.spawn(read_n(c, 4));
      co_await weir::yield();
      peer.send("data");
      EXPECT_EQ(co_await read, "data");
      done = true;
    });
  });
}

TEST(socket, a_wait_for_io_is_no_deadlock_and_the_dump_names_it) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto read = s.spawn(read_n(c, 4));
      co_await weir::yield();
      std::ostringstream out;
      weir::dump(out);
      EXPECT_TRUE(contains(out.str(), "read_exactly on socket " + c.peer().str())) << out.str();
      peer.send("data");
      co_await read;
    });
  });
}

using socket_death = testing::Test;
TEST_F(socket_death, destroying_one_while_an_operation_waits_aborts_with_its_name) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(with_connection([](io::socket& c, plain_socket&) -> task<> {
                 auto owned = std::make_unique<io::socket>(std::move(c));
                 co_await weir::with_scope([&](weir::scope& s) -> task<> {
                   std::string into(4, '.');
                   s.spawn(error_of(owned->read_some(bytes_of(into))));
                   co_await weir::yield();
                   owned.reset();
                 });
               }),
               "was destroyed while read_some waits for it");
}
