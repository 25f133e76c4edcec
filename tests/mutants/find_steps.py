# SPDX-License-Identifier: Apache-2.0
"""Finds the protective steps of a source: guards, steps whose error is returned, and their bounds.

Kinds of mutants, and what each takes out:
  guard    an operand of the condition before `return <error>`, which is then never met
  pass     an operand of the condition before `return <success>` in front of an error, which then always is
  edge     the strictness of a comparison in such an operand: > for >=, <= for <
  step     a call whose error would be returned: it is not made
  ignored  the same for what reaches the storage: it is made, its error is not looked at
  anyway   the condition of a step that follows only on success
"""

import re

SUCCESS = re.compile(r"(\{\}|(sealpoint::)?Status\(\))$")
ERROR = re.compile(
    r"\w*Error\b|\bCorrupt\(|\bFault\(|\bInvalidArgument\(|\bNo[A-Z]\w+\(|\bStatus\(|\brefuse\(|\bmissing\(|"
    r"\bUnknown\w+\(|\bEndsEarly\(|\berror\b|\bstatus\b|^false$|\bnullopt$|\bnullptr$|\bRebased\(|\bproblem\b|"
    r"\bFail\w*\(|\bfail\(|\b(removed|published|synced|found|voided|broken_)$|\bReport\w*\(|\bViolat\w+\(|\bCancelled\(|"
    r"\bUsageError\(|\bKind::kForeign|\bkInvalid\b|\b(Malformed|Bad|Refuse|Forbidden)[A-Z]\w*\(|\b(Mismatch|Disagreement)\(")
STORAGE_CALL = re.compile(
    r"^(Sync\w*|Close|WriteAt|WriteAll|Publish\w*|WriteFileDurably|fsync|close|linkat|renameat2|pwrite)$")
CALL_OF_A_STEP = re.compile(
    r"^(Check|Verify|Sync|Close|Publish|Write|Read|Finish|Run|Decompress|Note|Remove|Agree|Require|Prove)")
REPORT = re.compile(r"(return )?([Rr]eport\w*|[\w.]*findings_?\.Add|\w*violations_?\.push_back)\(")
COMPARISON = re.compile(r"(?<= )(<=|>=|<|>)(?= )")
IGNORED = ("::sealpoint::mutants::Ignore($OUT, ::sealpoint::mutants::Noted(", ", $NOTE))")
SWAPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
RULE = re.compile(r'"(R-[A-Z]{3}-\d\d)"')


class Site:
    """A span of the source and the text put around it; `make` gets the id of the mutant."""

    def __init__(self, kind, label, begin, end, make):
        self.kind, self.label, self.begin, self.end, self.make = kind, label, begin, end, make
        self.base = self  # a variant takes the name of the site it belongs to


def out(mutant):
    return f'SEALPOINT_MUTANT_IS_OUT("{mutant}")'


def fill(text, mutant):
    """$OUT: whether it is taken out; $DIFFERS: notes that this makes a difference, true; $NOTE: the function for that."""
    text = text.replace("$DIFFERS", f'SEALPOINT_MUTANT_HAPPENS("{mutant}")')
    return text.replace("$NOTE", f'SEALPOINT_MUTANT_HAPPENED("{mutant}")').replace("$OUT", out(mutant))


def around(before, after):
    return lambda mutant: (fill(before, mutant), fill(after, mutant))


class Finder:
    def __init__(self, source):
        self.source, self.sites = source, []

    def find(self):
        self.find_ifs()
        self.find_steps()
        self.find_returns()
        self.find_assignments()
        self.find_calls()
        self.find_flags()
        self.sites.sort(key=lambda site: (site.begin, -site.end))
        return self.sites

    def add(self, kind, label, begin, end, before, after, base=None):
        if self.source.function_at(begin) is None:
            return None
        site = Site(kind, label, begin, end, around(before, after))
        site.base = base or site
        self.sites.append(site)
        return site

    def text(self, begin, end):
        return self.source.masked[begin:end]

    # Conditions.

    def label_of(self, condition, begin, end, function):
        """The rule that the error in [begin, end) names, or what is checked."""
        text = self.source.text[begin:end]
        if match := RULE.search(text):
            return match[1]
        for name in re.findall(r"\bk\w*Rule\b", text):
            of_function = self.source.text[function.begin:begin] if function else ""
            for where in (of_function, self.source.text):
                if match := re.search(name + r' = "(R-[A-Z]{3}-\d\d)"', where):
                    return match[1]
        is_propagated = re.search(r"\berror\(\)|\bstatus\b", self.text(begin, end)) and re.fullmatch(
            r"!?[\w.]+(\.ok\(\))?", condition)
        return "error" if is_propagated else "guard"

    def add_condition(self, begin, end, label, is_guard):
        """One mutant per operand: of || for a guard (never true), of && for its contrary (always true)."""
        kind, operator = ("guard", "||") if is_guard else ("pass", "&&")
        for first, last in self.source.split(begin, end, operator):
            if is_guard:
                before, after = "(!$OUT && (", ") && $DIFFERS)"
            else:
                before, after = "($OUT || (", ") || !$DIFFERS)"
            base = self.add(kind, label, first, last, before, after)
            if base is None:
                continue
            if not is_guard and (match := re.search(r"::(\w+)\(", self.text(first, last))):
                if STORAGE_CALL.match(match[1]):
                    self.add("ignored", label, first, last, "((", ") || ($DIFFERS && $OUT))", base)
            self.add_edges(first, last, base, label)

    def add_edges(self, begin, end, base, label):
        text = self.source.text[begin:end]
        if "{" in self.text(begin, end) or "SEALPOINT_MUTANT" in self.text(begin, end):
            return
        for match in COMPARISON.finditer(self.text(begin, end)):
            rest = self.text(begin, end)[match.end():].strip()
            if match[0] in "<>" and re.match(r"0\b(?!\))", rest):
                if re.search(r"\b(fd|flags|got|written|order|count)\s*$", self.text(begin, begin + match.start())):
                    continue
            swapped = text[:match.start()] + SWAPPED[match[0]] + text[match.end():]
            self.add("edge", label, begin, end, f"($OUT ? ({swapped}) : ::sealpoint::mutants::Compared(({swapped}), (",
                     "), $NOTE))", base)

    def is_error(self, begin, end):
        expression = self.text(begin, end).strip()
        return not SUCCESS.match(expression) and ERROR.search(expression) is not None

    def exit_of(self, begin, end):
        """What the last statement of a body does: error, success, skip (continue, break), or nothing."""
        statements = self.source.statements(begin, end)
        if not statements:
            return ""
        if any(REPORT.match(self.text(*statement)) for statement in statements):
            return "error"
        last = self.text(*statements[-1]).strip()
        if last in ("continue;", "break;", "return;"):
            return "skip"
        match = re.match(r"return\b", last)
        if not match:
            return ""
        first = self.source.statements(begin, end)[-1][0] + 6
        if self.is_error(first, statements[-1][1] - 1):
            return "error"
        return "success"

    def find_ifs(self):
        masked = self.source.masked
        for match in re.finditer(r"\b(if|while) \(", masked):
            opened = match.end() - 1
            closed = self.source.partner[opened]
            begin, end = self.source.split(opened + 1, closed, ";")[-1]
            function = self.source.function_at(begin)
            body = self.source.body_at(closed + 1)
            behind = self.exit_behind(match.start(), body)
            what = self.exit_of(*body)
            condition = self.text(begin, end)
            if re.match(r"(const )?[\w:<>]+[&* ]+(const )?\w+ =\s", condition):
                continue  # declares what it looks at
            if match[1] == "while":
                if "::" in condition and what != "error":
                    continue
                continue
            ended = re.fullmatch(r"(\w+)\.ok\(\)", condition)
            if what == "error":
                self.add_condition(begin, end, self.label_of(condition, *body, function), True)
            elif behind and what in ("success", "skip"):
                self.add_condition(begin, end, self.label_of(condition, *behind, function), False)
            elif ended and re.match(r"\w+ = ", self.text(*body).strip()):
                self.add("anyway", "error", begin, end, "($OUT || (", ") || !$DIFFERS)")

    def exit_behind(self, at, body):
        """The span of the error that follows when the `if` at `at` does not leave, with nothing in between."""
        block = max((o for o, c in self.source.partner.items()
                     if o < at < c and self.source.masked[o] == "{"), default=None)
        if block is None:
            return None
        for begin, end in self.source.statements(block + 1, self.source.partner[block]):
            if begin < body[1]:
                continue
            text = self.text(begin, end)
            if REPORT.match(text):
                return begin, end
            if text.startswith("return"):
                return (begin, end) if self.is_error(begin + 6, end - 1) and "?" not in text else None
            if text.startswith("if ("):
                inner = self.source.body_at(self.source.partner[begin + 3] + 1)
                if self.exit_of(*inner) == "error":
                    continue
            if re.match(r"(if|for|while|switch)\b|SEALPOINT_", text):
                return None
        return None

    # Steps.

    def callee(self, begin, end):
        for match in re.finditer(r"(\w+)\(", self.text(begin, end)):
            if match[1] not in ("move", "AtRule", "AtPath", "static_cast"):
                return match[1]
        return ""

    def find_steps(self):
        for match in re.finditer(r"\bSEALPOINT_RETURN_IF_ERROR\(", self.source.masked):
            opened = match.end() - 1
            closed = self.source.partner[opened]
            label = self.callee(opened + 1, closed) or "error"
            end = self.source.statement_end(match.start())
            base = self.add("step", label, match.start(), end, "if (!$OUT) ", "")
            self.add_note(opened + 1, closed, base)
            if base and STORAGE_CALL.match(label):
                self.add("ignored", label, opened + 1, closed, *IGNORED, base)

    def find_returns(self):
        """`return Step();` and `return condition ? Status() : error;` of functions that return a Status."""
        for match in re.finditer(r"\breturn (?=[^;])", self.source.masked):
            function = self.source.function_at(match.start())
            if function is None:
                continue
            end = self.source.statement_end(match.end()) - 1
            returns = function.returns.split()[-1:] if function.returns else []
            self.find_condition_of_return(match.end(), end, function)
            expression = self.text(match.end(), end)
            label = self.callee(match.end(), end)
            in_lambda = self.in_lambda(match.start(), function)
            if returns == ["Status"] and not in_lambda and "?" not in expression and CALL_OF_A_STEP.match(label):
                self.add_call(match.end(), end, label)
            elif returns == ["bool"] and not in_lambda and "?" not in expression:
                if len(self.source.split(match.end(), end, "&&")) > 1:
                    self.add_condition(match.end(), end, "all-of", False)

    def in_lambda(self, at, function):
        for opened in range(at, function.begin, -1):
            if self.source.masked[opened] == "{" and self.source.partner[opened] > at:
                before = self.source.masked[:opened].rstrip()
                if re.search(r"\[[^\[\]]*\]\s*(\([^()]*(\([^()]*\)[^()]*)*\))?(\s*->\s*[\w:<>]+)?$", before):
                    return True
        return False

    def find_condition_of_return(self, begin, end, function):
        parts = self.source.split(begin, end, " ? ")
        if len(parts) != 2:
            return
        branches = self.source.split(*parts[1], " : ")
        if len(branches) != 2:
            return
        is_success = [SUCCESS.match(self.text(*branch)) is not None for branch in branches]
        if is_success == [True, False]:
            self.add_condition(*parts[0], self.label_of("", *branches[1], function), False)
        elif is_success == [False, True]:
            self.add_condition(*parts[0], self.label_of("", *branches[0], function), True)

    def add_note(self, begin, end, base):
        """Lets a step note that it failed; without a mutant of its own."""
        if base:
            self.add("note", base.label, begin, end, "::sealpoint::mutants::Noted(", ", $NOTE)", base)

    def add_call(self, begin, end, label):
        base = self.add("step", label, begin, end, "$OUT ? ::sealpoint::Status() : (", ")")
        self.add_note(begin, end, base)
        if base and STORAGE_CALL.match(label):
            self.add("ignored", label, begin, end, *IGNORED, base)

    def find_calls(self):
        """`CheckThis(...);` that reports what it finds, and `expect(condition, ...);`."""
        for match in re.finditer(r"(?<=[;{})])\s+(?:(Check\w+)|(expect))\(", self.source.masked):
            if match[1]:
                begin = match.start(1)
                self.add("step", match[1], begin, self.source.statement_end(begin), "if (!$OUT) ", "")
            else:
                opened = match.end() - 1
                begin, end = self.source.split(opened + 1, self.source.partner[opened], ",")[0]
                self.add("pass", "expect", begin, end, "($OUT || (", ") || !$DIFFERS)")

    def find_flags(self):
        """The operands of `const bool holds = A && B;` where a condition found above is only `holds`."""
        checked = {}
        for site in self.sites:
            name = self.text(site.begin, site.end)
            if re.fullmatch(r"!?\w+", name):
                holds = (site.kind == "pass") != name.startswith("!")
                checked[self.source.function_at(site.begin), name.lstrip("!")] = (holds, site.label)
        for match in re.finditer(r"\bbool (\w+) =\s", self.source.masked):
            found = checked.get((self.source.function_at(match.start()), match[1]))
            end = self.source.statement_end(match.end()) - 1
            if found is None or "?" in self.text(match.end(), end):
                continue
            holds, label = found
            if len(self.source.split(match.end(), end, "&&" if holds else "||")) > 1:
                self.add_condition(match.end(), end, label, not holds)

    def find_assignments(self):
        """`Status x = Step();` and `status = Step();`."""
        for match in re.finditer(r"(?:\bStatus|[;{})])\s+(\w+) = ", self.source.masked):
            name = match[1]
            if not match[0].startswith("Status") and not re.fullmatch(r"status|mine|result_status|whole|problem", name):
                continue
            end = self.source.statement_end(match.end()) - 1
            text = self.text(match.end(), end)
            label = self.callee(match.end(), end)
            if "?" in text or not (CALL_OF_A_STEP.match(label) or STORAGE_CALL.match(label)):
                continue
            before = self.source.masked[:match.start(1)].rstrip()
            if before.endswith("("):
                end = min(end, self.source.partner[len(before) - 1])
            self.add_call(match.end(), end, label)
