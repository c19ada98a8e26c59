"""Tests of the site's parts: how headers are read, comments parted, and anchors made."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts" / "site"), str(ROOT / "tests" / "tidy")]

import _declarations  # noqa: E402


def read(text):
    return _declarations.read(text)


def members(text):
    return read(text)[0].members


class Declarations(unittest.TestCase):
    def test_comment_above_and_comment_behind(self):
        first, second = members("struct s {\n  // Above.\n  int a = 1;\n  int b;  // behind\n};")
        self.assertEqual((first.comment, first.text), (["Above."], "int a = 1;"))
        self.assertEqual((second.comment, second.text), (["behind"], "int b;"))

    def test_declarations_without_a_blank_line_share_a_comment(self):
        found = members(
            "struct s {\n  // Both ends.\n  int local() const;\n  int peer() const;\n\n"
            "  int other();\n};"
        )
        self.assertEqual([one.shares for one in found], [False, True, False])

    def test_section_comment_belongs_to_nothing(self):
        [found] = members("struct s {\n  // A part.\n\n  int a();\n};")
        self.assertEqual(found.comment, [])

    def test_private_members_are_left_out(self):
        self.assertEqual(
            [
                one.name
                for one in members(
                    "class s {\n  int a;\n public:\n  int b;\n private:\n  int c;\n};"
                )
            ],
            ["b"],
        )

    def test_body_and_initializers_are_cut(self):
        [made, other] = members(
            "struct s {\n  explicit s(int a) noexcept : a_{a}, b_(1) { f(); }\n"
            "  int g() const { return {1}; }\n};"
        )
        self.assertEqual(made.text, "explicit s(int a) noexcept;")
        self.assertEqual(other.text, "int g() const;")

    def test_values_with_braces_are_no_functions(self):
        found = members(
            "struct s {\n  limits turn{0, span()};\n  std::function<void(int)> call{};\n"
            "  char text[8]{};\n  int a = 0, b = 1;\n};"
        )
        self.assertEqual(
            [(one.kind, one.names) for one in found],
            [("value", ["turn"]), ("value", ["call"]), ("value", ["text"]), ("value", ["a", "b"])],
        )

    def test_constraints_have_lines_of_their_own(self):
        [found] = read(
            "template <class T>\nrequires(is_good<T> && (sizeof(T) > 1)) auto when_all(T&& all) {}"
        )
        self.assertEqual(
            (found.name, found.text),
            (
                "when_all",
                "template <class T>\nrequires(is_good<T> && (sizeof(T) > 1))\n"
                "auto when_all(T&& all);",
            ),
        )

    def test_a_constraint_behind_the_parameters_ends_before_the_body(self):
        found = members("struct s {\n  int f() const requires small { return 1; }\n  int g();\n};")
        self.assertEqual([one.text for one in found], ["int f() const requires small;", "int g();"])

    def test_requires_expressions_are_values(self):
        found = read(
            "template <class T>\nconcept good = requires(T t) {\n  t.f();\n};\n"
            "template <class T>\nrequires requires(T t) { t.g(); } void f(T);"
        )
        self.assertEqual(
            [(one.kind, one.name) for one in found], [("concept", "good"), ("function", "f")]
        )

    def test_operators_and_specializations(self):
        [found] = members("struct s {\n  explicit operator bool() const;\n};")
        self.assertEqual(found.name, "operator bool")
        self.assertEqual(
            read(
                "template <> struct s<int> {};\ntemplate <class T> void s<T>::f() {}\n"
                "template <> inline constexpr bool v<int> = true;"
            ),
            [],
        )

    def test_bases_and_long_parameters(self):
        [found] = read("class s final : public base, private hidden { };")
        self.assertEqual((found.bases, found.text), (["base"], "class s final : public base"))
        [found] = read(f"void f(int {'a' * 50}, int {'b' * 50});")
        self.assertEqual(found.text, f"void f(\n    int {'a' * 50},\n    int {'b' * 50});")

    def test_enumerators_have_comments(self):
        [found] = read("enum class e : int {\n  a,  // one\n  // two\n  b = 3,\n};")
        self.assertEqual(
            [(one.text, one.comment) for one in found.members], [("a", ["one"]), ("b = 3", ["two"])]
        )

    def test_slashes_and_braces_in_literals(self):
        found = read('inline const char* a = "// {";\nint b();')
        self.assertEqual([one.name for one in found], ["a", "b"])


class Header:
    def __init__(self, text):
        self.declarations = read(text)


class Awaited(unittest.TestCase):
    def given(self, text, function, scope=""):
        import awaited

        *_, last = read(function)
        return awaited.Awaited([Header(text)]).given(last, scope)

    def test_result_of_the_job(self):
        text = "namespace troupe::io {\nstruct size_job {\n  using result = long;\n};\n}"
        self.assertEqual(self.given(text, "io::awaitable<io::size_job> size();"), "long")
        self.assertIsNone(self.given(text, "task<int> other();"))

    def test_finish_of_the_job_with_its_argument(self):
        text = (
            "namespace troupe::sync {\ntemplate <class T>\nstruct taking {\n"
            "  std::optional<T> finish() noexcept;\n};\n}"
        )
        function = "template <class T>\nsync::awaiting<sync::taking<int>> take(T from = {}) const;"
        self.assertEqual(self.given(text, function), "std::optional<int>")

    def test_alias_of_the_class(self):
        text = (
            "namespace troupe {\nnamespace io {\nstruct job {\n  using result = file;\n};\n}\n"
            "struct s {\n  using opening = io::awaitable<io::job>;\n};\n}"
        )
        self.assertEqual(self.given(text, "opening open();", "s"), "file")


class Comments(unittest.TestCase):
    def setUp(self):
        sys.path.append("/usr/lib/python3/dist-packages")
        try:
            import comments
        except ImportError:
            self.skipTest("needs python3-pygments")
        self.comments = comments

    def test_labels_part_a_paragraph(self):
        general, facts = self.comments.parts_of(
            "Waits. Thread: any. It is quick. Cost: 10 ns. Throws io_error. "
            "Lifetime: as long as its runtime."
        )
        self.assertEqual(general, "Waits. It is quick.")
        self.assertEqual(
            facts,
            [
                ("Thread", "any."),
                ("Cost", "10 ns."),
                ("Errors", "Throws io_error."),
                ("Lifetime", "as long as its runtime."),
            ],
        )

    def test_a_long_label_keeps_its_sentences(self):
        _, facts = self.comments.parts_of(
            "Thread: each connection is a task of its own. Handlers run one by one."
        )
        self.assertEqual([word for word, _ in facts], ["Thread", "Thread"])

    def test_blocks(self):
        lines = [
            "Text",
            "more.",
            "",
            "  T1  a rule",
            "",
            "Example (declarations):",
            "    int a;",
            "",
            "    int b;",
            "After.",
        ]
        self.assertEqual(
            self.comments.blocks(lines),
            [
                ("text", ["Text", "more."]),
                ("note", ["  T1  a rule"]),
                ("example", ["int a;", "", "int b;"]),
                ("text", ["After."]),
            ],
        )


if __name__ == "__main__":
    unittest.main()
