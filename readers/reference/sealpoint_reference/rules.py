# SPDX-License-Identifier: Apache-2.0
"""Rules, their codes and verdicts (spec/reader-rules.md, sections 1 and 5)."""

_OTHER_CODES = {
    "R-DIR-01": "NotFound",
    "R-DIR-02": "Incomplete",
    "R-DIR-05": "NotACheckpoint",
    "R-HDR-02": "NotACheckpoint",
    "R-HDR-05": "Unsupported",
    "R-HDR-06": "Unsupported",
    "R-MRK-01": "Uncommitted",
    "R-MRK-03": "Unsupported",
    "R-MRK-05": "Incomplete",
    "R-MRK-09": "Uncommitted",
    "R-IDX-01": "LimitExceeded",
    "R-IDX-03": "Unsupported",
    "R-IDX-04": "LimitExceeded",
    "R-IDX-08": "Unsupported",
    "R-IDX-24": "Unsupported",
    "R-BLB-01": "Incomplete",
    "R-REC-05": "Unsupported",
    "R-COD-01": "Unsupported",
    "R-DLT-03": "Incomplete",
    "R-DLT-08": "Unsupported",
    "R-ATT-04": "Unsupported",
}

_LAST_OF_FAMILY = {"DIR": 5, "HDR": 10, "MRK": 9, "IDX": 24, "BLB": 9, "REC": 5, "CHK": 2, "COD": 8, "FPR": 3, "ATT": 6,
                   "DLT": 8}
_NOTES = ("R-DIR-03", "R-DIR-04")

# Rule -> code of its violation; what is not listed above is Corrupt.
CODES = {
    rule: _OTHER_CODES.get(rule, "Corrupt")
    for family, last in _LAST_OF_FAMILY.items()
    for rule in (f"R-{family}-{number:02d}" for number in range(1, last + 1))
    if rule not in _NOTES
}

_VERDICTS = {
    "Uncommitted": "uncommitted",
    "Incomplete": "incomplete",
    "Corrupt": "corrupt",
    "Unsupported": "unsupported",
    "LimitExceeded": "unsupported",
}
_WORST_FIRST = ("corrupt", "incomplete", "unreadable", "unsupported", "uncommitted")

EXIT_STATUS = {
    "committed": 0,
    "corrupt": 1,
    "uncommitted": 2,
    "unsupported": 3,
    "unreadable": 4,
    "incomplete": 5,
}


class Violation(Exception):
    """A rule that does not hold. Any other exception is a bug of this reader."""

    def __init__(self, rule, message, file="", offset=None, tensor=None, code=None):
        super().__init__(message)
        self.code = code or CODES[rule]
        self.rule = rule
        self.message = message
        self.file = file
        self.offset = offset
        self.tensor = tensor

    def __str__(self):
        place = self.file if self.offset is None else f"{self.file}:{self.offset}"
        subject = f' "{self.tensor}"' if self.tensor is not None else ""
        return f"{self.rule or self.code} {place}{subject}: {self.message}"

    def as_dict(self):
        return {"code": self.code, "rule": self.rule, "file": self.file, "offset": self.offset,
                "tensor": self.tensor, "message": self.message}


def verdict(violations):
    found = {_VERDICTS.get(violation.code, "unreadable") for violation in violations}
    return next((word for word in _WORST_FIRST if word in found), "committed")
