"""Tests of snippets.py: what is found, what is refused, what is made of it."""

import unittest

import snippets


def markdown(info, body, rest=""):
    return snippets.from_markdown("a.md", f"text\n```{info}\n{body}\n```\n{rest}")


class Markdown(unittest.TestCase):
    def test_program_is_taken_as_it_is(self):
        [found] = markdown("cpp", "int main() {}")
        self.assertEqual((found.kind, found.run, found.where), ("program", True, "a.md:3"))
        self.assertEqual(snippets.program(found), '#line 3 "a.md"\nint main() {}\n')

    def test_block_without_main_needs_a_mark(self):
        with self.assertRaisesRegex(snippets.Malformed, "a.md:3: no `int main`"):
            markdown("cpp", "int x;")

    def test_unknown_mark_is_refused(self):
        with self.assertRaisesRegex(snippets.Malformed, "`fragmnt`"):
            markdown("cpp fragmnt", "int x;")

    def test_fragment_becomes_a_function_and_its_includes_move_up(self):
        [found] = markdown("cpp fragment", "#include <map>\nstd::map<int, int> m;")
        text = snippets.program(found)
        self.assertLess(text.index("#include <map>"), text.index("static void fragment()"))
        self.assertIn('#line 3 "a.md"\n\nstd::map', text)
        self.assertTrue(found.run)

    def test_fragment_that_awaits_becomes_a_coroutine(self):
        [found] = markdown("cpp fragment", "co_await x;")
        self.assertIn("troupe::task<void> fragment()", snippets.program(found))

    def test_declarations_and_norun_are_only_compiled(self):
        self.assertFalse(markdown("cpp declarations", "int x;")[0].run)
        self.assertFalse(markdown("cpp norun", "int main() {}")[0].run)

    def test_output_belongs_to_the_program_above(self):
        [found] = markdown("cpp", "int main() {}", "```text output\nhello\n```\n")
        self.assertEqual(found.output, "hello\n")
        with self.assertRaisesRegex(snippets.Malformed, "follows no program"):
            markdown("sh", "ls", "```text output\nhello\n```\n")

    def test_unclosed_block_is_refused(self):
        with self.assertRaisesRegex(snippets.Malformed, "never closed"):
            snippets.from_markdown("a.md", "```cpp\nint main() {}\n")

    def test_other_languages_are_left_alone(self):
        self.assertEqual(markdown("sh", "./test"), [])
        self.assertEqual(markdown("", "anything"), [])


class Batch(unittest.TestCase):
    def test_each_runs_by_its_number(self):
        found = [markdown("cpp", "int main() {\n  f();\n}")[0], markdown("cpp fragment", "g();")[0], markdown("cpp norun", "int main() {\n}")[0],
                 markdown("cpp", "int main(int argc, char** argv) {\n}")[0]]
        text = snippets.batch(found)
        self.assertIn("  f();\nreturn 0; }", text)
        self.assertIn("if (number == 0) return example_0::main();", text)
        self.assertIn("if (number == 1) return example_1::main();", text)
        self.assertNotIn("example_2::main", text)
        self.assertIn("if (number == 3) return example_3::main(1, argv);", text)

    def test_some_are_alone(self):
        for code in ("template <> struct s<int> {};", "#define a b", "namespace std {}"):
            self.assertFalse(snippets.can_be_in_a_batch(markdown("cpp declarations", code)[0]))
        self.assertFalse(snippets.can_be_in_a_batch(markdown("cpp", "int main() { f(); }")[0]), "its end is not found")
        for code in ("int main() {\n  f();\n}", "using namespace std::chrono_literals;\nint main() {\n  f();\n}"):
            self.assertTrue(snippets.can_be_in_a_batch(markdown("cpp", code)[0]))


class Header(unittest.TestCase):
    def test_example_is_compiled_with_its_header(self):
        text = "// ref: a thing.\n// Example:\n//     int x = 1;\n//\n//     ++x;\nclass ref;\n"
        [found] = snippets.from_header("troupe/troupe.hpp", text)
        self.assertEqual((found.kind, found.code, found.run), ("fragment", "int x = 1;\n\n++x;\n", False))
        self.assertEqual(found.where, "include/troupe/troupe.hpp:3")
        self.assertTrue(snippets.program(found).startswith("#include <troupe/troupe.hpp>\n"))

    def test_example_ends_with_the_indentation(self):
        text = "  // Example (declarations):\n  //     struct s {};\n  // More words.\n"
        [found] = snippets.from_header("troupe/a.hpp", text)
        self.assertEqual((found.kind, found.code), ("declarations", "struct s {};\n"))

    def test_empty_example_is_refused(self):
        with self.assertRaisesRegex(snippets.Malformed, "the example is empty"):
            snippets.from_header("troupe/a.hpp", "// Example:\n//   int x;\n")


if __name__ == "__main__":
    unittest.main()
