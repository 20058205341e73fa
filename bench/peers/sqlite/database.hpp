// SPDX-License-Identifier: MIT
//
// A database of SQLite as one would use it for a journal: write-ahead log, synced at each commit.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace bench {

class database {
 public:
  explicit database(const std::string& path, const char* synchronous = "FULL") {
    check(sqlite3_open(path.c_str(), &db_));
    execute("PRAGMA journal_mode=WAL");
    execute((std::string("PRAGMA synchronous=") + synchronous).c_str());
    execute(
        "CREATE TABLE IF NOT EXISTS records (lsn INTEGER PRIMARY KEY, run INTEGER, type INTEGER,"
        " payload BLOB)");
    prepare("INSERT INTO records (run, type, payload) VALUES (?, ?, ?)", insert_);
    prepare("SELECT lsn, run, type, payload FROM records ORDER BY lsn", select_);
  }
  database(const database&) = delete;
  database& operator=(const database&) = delete;
  ~database() {
    sqlite3_finalize(insert_);
    sqlite3_finalize(select_);
    sqlite3_close(db_);
  }

  void begin() { execute("BEGIN IMMEDIATE"); }
  void commit() { execute("COMMIT"); }
  void append(std::int64_t run, int type, const std::string& payload) {
    check(sqlite3_bind_int64(insert_, 1, run));
    check(sqlite3_bind_int(insert_, 2, type));
    check(sqlite3_bind_blob(insert_, 3, payload.data(), static_cast<int>(payload.size()), nullptr));
    if (sqlite3_step(insert_) != SQLITE_DONE) fail();
    check(sqlite3_reset(insert_));
  }
  /// Calls see(run, type, bytes of the payload) for every record, in order.
  template <class F>
  void read_all(F see) {
    for (;;) {
      const int found = sqlite3_step(select_);
      if (found == SQLITE_DONE) break;
      if (found != SQLITE_ROW) fail();
      see(sqlite3_column_int64(select_, 1), sqlite3_column_int(select_, 2),
          sqlite3_column_bytes(select_, 3));
    }
    check(sqlite3_reset(select_));
  }

 private:
  void execute(const char* text) { check(sqlite3_exec(db_, text, nullptr, nullptr, nullptr)); }
  void prepare(const char* text, sqlite3_stmt*& into) {
    check(sqlite3_prepare_v2(db_, text, -1, &into, nullptr));
  }
  void check(int code) {
    if (code != SQLITE_OK) fail();
  }
  [[noreturn]] void fail() {
    std::fprintf(stderr, "sqlite: %s\n", sqlite3_errmsg(db_));
    std::exit(3);
  }

  sqlite3* db_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  sqlite3_stmt* select_ = nullptr;
};

}  // namespace bench
