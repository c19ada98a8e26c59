// fortunes: the tables of the rows db/postgres_updates and db/fortunes, and the page that a server
// must answer for them.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace db_work {

// What is lost with a loss of power is not the question, and both contestants would wait for the
// disk.
inline constexpr const char* web_tables =
    "ALTER DATABASE postgres SET synchronous_commit = off;"
    "DROP TABLE IF EXISTS world, fortune;"
    "CREATE TABLE world (id int PRIMARY KEY, number int NOT NULL);"
    "INSERT INTO world SELECT n, n FROM generate_series(1, 10000) AS n;"
    "CREATE TABLE fortune (id int PRIMARY KEY, message text NOT NULL);"
    "INSERT INTO fortune VALUES"
    " (1, 'fortune: No such file or directory'),"
    " (2, 'A computer scientist is someone who fixes things that aren''t broken.'),"
    " (3, 'After enough decimal places, nobody gives a damn.'),"
    " (4, 'A bad random number generator: 1, 1, 1, 1, 1, 4.33e+67, 1, 1, 1'),"
    " (5, 'A computer program does what you tell it to do, not what you want it to do.'),"
    " (6, 'Emacs is a nice operating system, but I prefer UNIX. — Tom Christaensen'),"
    " (7, 'Any program that runs right is obsolete.'),"
    " (8, 'A list is only as strong as its weakest link. — Donald Knuth'),"
    " (9, 'Feature: A bug with seniority.'),"
    " (10, 'Computers make very fast, very accurate mistakes.'),"
    " (11, '<script>alert(\"This should not be displayed in a browser alert box.\");</script>'),"
    " (12, 'フレームワークのベンチマーク');"
    "ANALYZE world; ANALYZE fortune";

// Sorted by the bytes of their messages, and escaped.
inline std::string fortunes_page() {
  constexpr std::array<std::string_view, 13> rows{
      "11</td><td>&lt;script&gt;alert(&quot;This should not be displayed in a browser alert "
      "box.&quot;);&lt;/script&gt;",
      "4</td><td>A bad random number generator: 1, 1, 1, 1, 1, 4.33e+67, 1, 1, 1",
      "5</td><td>A computer program does what you tell it to do, not what you want it to do.",
      "2</td><td>A computer scientist is someone who fixes things that aren&#39;t broken.",
      "8</td><td>A list is only as strong as its weakest link. — Donald Knuth",
      "0</td><td>Additional fortune added at request time.",
      "3</td><td>After enough decimal places, nobody gives a damn.",
      "7</td><td>Any program that runs right is obsolete.",
      "10</td><td>Computers make very fast, very accurate mistakes.",
      "6</td><td>Emacs is a nice operating system, but I prefer UNIX. — Tom Christaensen",
      "9</td><td>Feature: A bug with seniority.",
      "1</td><td>fortune: No such file or directory",
      "12</td><td>フレームワークのベンチマーク",
  };
  std::string page =
      "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table><tr><th>id</th>"
      "<th>message</th></tr>";
  for (const std::string_view row : rows) page.append("<tr><td>").append(row).append("</td></tr>");
  return page + "</table></body></html>";
}

}  // namespace db_work
