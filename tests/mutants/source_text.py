# SPDX-License-Identifier: Apache-2.0
"""A lexical view of a C++ source that clang-format wrote: enough to find conditions, statements and functions."""

import bisect
import re

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'|^[ \t]*\#(?:[^\n\\]|\\.)*""",
    re.S | re.M)
OPENING, CLOSING = "([{", ")]}"


def mask(text):
    """The text with comments, literals and preprocessor lines blanked; all positions stay."""

    def blank(match):
        found = match[0]
        if found[0] in "\"'":
            return found[0] + "_" * (len(found) - 2) + found[0]
        return re.sub(r"[^\n]", " ", found)

    return TOKEN.sub(blank, text)


class Function:
    def __init__(self, name, returns, begin, end):
        self.name, self.returns, self.begin, self.end = name, returns, begin, end


class Source:
    def __init__(self, text):
        self.text = text
        self.masked = mask(text)
        self.partner = self._match_brackets()
        self.functions = self._find_functions()
        self._begins = [function.begin for function in self.functions]

    def _match_brackets(self):
        partner, stack = {}, []
        for at, char in enumerate(self.masked):
            if char in OPENING:
                stack.append(at)
            elif char in CLOSING:
                opened = stack.pop()
                partner[opened], partner[at] = at, opened
        return partner

    def _find_functions(self):
        functions, at, scopes_end = [], 0, []
        while (at := self.masked.find("{", at)) != -1:
            end = self.partner[at]
            header = self._header_before(at)
            if re.match(r"(inline )?namespace\b|extern\b", header) or (
                    re.match(r"(template\s*<.*>\s*)?(class|struct|union|enum)\b", header, re.S)
                    and not header.endswith((")", "const"))):
                at += 1
            elif "(" in header and self.masked[at - 1].isspace() and "=" not in header.split("(")[0]:
                name, returns = self._name_of(header)
                functions.append(Function(name, returns, at, end))
                at = end
            else:
                at = end
        return functions

    def _header_before(self, at):
        begin = at
        while begin > 0:
            char = self.masked[begin - 1]
            is_initialiser = char == "}" and re.match(r"\s*[,{]", self.masked[begin:at + 1])
            if char in ")]" or is_initialiser:
                begin = self.partner[begin - 1]
            elif char in ";{}":
                break
            else:
                begin -= 1
        header = self.masked[begin:at].strip()
        return re.sub(r"^(public|private|protected):\s*", "", header)

    @staticmethod
    def _name_of(header):
        header = re.sub(r"^template\s*<[^()]*?>\s*(?=[\w\[:])", "", header, flags=re.S)
        header = re.sub(r"^requires\s*\(.*?\)\s+(?=[\w:]+ )", "", header, flags=re.S)
        match = re.search(r"(operator\s*[^\s(]+|[\w~][\w:~]*)\s*\(", header)
        return match[1].replace(" ", ""), " ".join(header[:match.start()].split())

    def function_at(self, at):
        number = bisect.bisect(self._begins, at) - 1
        if number < 0 or at > self.functions[number].end:
            return None
        return self.functions[number]

    def line_of(self, at):
        return self.text.count("\n", 0, at) + 1

    def skip_space(self, at):
        while self.masked[at].isspace():
            at += 1
        return at

    def statement_end(self, at):
        """The end of the simple statement at `at`: behind its semicolon."""
        while self.masked[at] != ";":
            at = self.partner[at] + 1 if self.masked[at] in OPENING else at + 1
        return at + 1

    def body_at(self, at):
        """(begin, end) of the inside of the block or of the simple statement at `at`."""
        at = self.skip_space(at)
        if self.masked[at] == "{":
            return at + 1, self.partner[at]
        return at, self.statement_end(at)

    def statements(self, begin, end):
        """The (begin, end) of the statements of a block; a compound one ends with its last block."""
        found, at = [], begin
        while (at := self._next_text(at, end)) < end:
            start = at
            while at < end and self.masked[at] != ";":
                if self.masked[at] == "{" and self._is_block(at):
                    at = self.partner[at]
                    if not re.match(r"\}\s*(else|while)\b", self.masked[at:]):
                        break
                at = self.partner[at] + 1 if self.masked[at] in OPENING else at + 1
            at = min(at + 1, end)
            found.append((start, at))
        return found

    def _next_text(self, at, end):
        while at < end and self.masked[at].isspace():
            at += 1
        return at

    def _is_block(self, at):
        before = self.masked[:at].rstrip()
        return self.masked[at - 1].isspace() and (
            before[-1] in ";{}" or before.endswith(("else", "do"))
            or (before[-1] == ")" and self._is_control(self.partner[len(before) - 1])))

    def _is_control(self, opened):
        return re.search(r"\b(if|if constexpr|for|while|switch)\s*$", self.masked[max(0, opened - 20):opened]) is not None

    def split(self, begin, end, operator):
        """The (begin, end) of the operands of an operator at the top level of an expression."""
        parts, start, at = [], begin, begin
        while at < end:
            if self.masked[at] in OPENING:
                at = self.partner[at] + 1
            elif self.masked.startswith(operator, at):
                parts.append((start, at))
                at += len(operator)
                start = at
            else:
                at += 1
        parts.append((start, end))
        return [self.strip(*part) for part in parts]

    def strip(self, begin, end):
        while begin < end and self.masked[begin].isspace():
            begin += 1
        while begin < end and self.masked[end - 1].isspace():
            end -= 1
        return begin, end
