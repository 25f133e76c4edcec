# SPDX-License-Identifier: Apache-2.0
"""Pages of the public headers, one for each, in the order of the header: from the XML that Doxygen makes of them."""

import collections
import html
import pathlib
import re
from xml.etree import ElementTree

# A page of a header: its text in Markdown, and what it declares.
Page = collections.namedtuple("Page", "text names")
GUARD = re.compile(r"SEALPOINT_(\w*_H_|C_API|EXPORT)$")
MENTION = re.compile(r"\b((?:docs|spec)/[a-z/-]+\.md)\b")
TAGS = {"para": "p", "itemizedlist": "ul", "orderedlist": "ol", "listitem": "li", "computeroutput": "code", "emphasis": "em",
        "bold": "strong", "ulink": "code"}


def _is_hidden(member):
    """What a caller never names: copies that are deleted or defaulted, friends, guards."""
    text = member.findtext("argsstring") or ""
    return (member.get("kind") == "friend" or member.get("prot") == "private" or bool(re.search(r"= ?(default|delete)$", text))
            or GUARD.match(member.findtext("name") or "") is not None)


def _is_unnamed(member):
    return not member.findtext("name") or member.findtext("name").startswith("@")


class Headers:
    """What Doxygen found below `folder`; `page_of` has the page of each header, `link_to` the address of a document of the
    repository as seen from a page, or None."""

    def __init__(self, folder, sources, page_of, link_to):
        self._folder, self._sources, self._page_of, self._link_to = pathlib.Path(folder), sources, page_of, link_to
        self._compounds, self._places, self._anchors = {}, {}, collections.Counter()
        self.files, self.members = {}, collections.defaultdict(list)
        for path in sorted(self._folder.glob("*.xml")):
            compound = ElementTree.parse(path).getroot().find("compounddef")
            if compound is not None and compound.get("kind") in ("file", "namespace", "struct", "class", "union"):
                self._compounds[compound.get("id")] = compound
        for compound in self._compounds.values():
            self._place(compound)

    def _place(self, compound):
        header, prefix = compound.find("location").get("file"), ""
        if compound.get("kind") == "file":
            self.files[header] = compound
        elif compound.get("kind") != "namespace":
            prefix = _short(compound.findtext("compoundname"))
            self._places[compound.get("id")] = (header, prefix)
        for member in compound.iter("memberdef"):
            header = member.find("location").get("file")
            is_new = member.get("id") not in self._places
            if not prefix and is_new and not self._is_alias_of_struct(member):
                self.members[header].append(member)
            if member.get("id") in self._places:
                continue
            name = re.sub(r"[^\w.~-]", "-", "enum-" + member.find("enumvalue/name").text if _is_unnamed(member) else
                          member.findtext("name"))
            anchor = self._unique(header, f"{prefix}.{name}" if prefix else name)
            self._places[member.get("id")] = (header, anchor)
            for value in member.iter("enumvalue"):
                inner = f"{anchor}.{value.findtext('name')}" if member.get("strong") == "yes" else value.findtext("name")
                self._places[value.get("id")] = (header, self._unique(header, inner))

    def _unique(self, header, anchor):
        self._anchors[header, anchor] += 1
        count = self._anchors[header, anchor]
        return anchor if count == 1 else f"{anchor}-{count}"

    def _is_alias_of_struct(self, member):
        """C's `typedef struct x x`, if the struct has members, which are documented there."""
        reference = member.find("type/ref") if member.get("kind") == "typedef" else None
        struct = self._compounds.get(reference.get("refid")) if reference is not None else None
        return struct is not None and struct.findtext("compoundname") == member.findtext("name")

    def page(self, header):
        return _Writer(self, header).page()

    def address(self, header, refid):
        """Where `refid` is documented, from the page of `header`; None if nowhere."""
        other, anchor = self._places.get(refid, (None, None))
        if other not in self._page_of:
            return None
        return f"{'' if other == header else self._link_to(header, self._page_of[other])}#{anchor}"

    def document(self, header, path):
        return self._link_to(header, path)

    def compound(self, refid):
        return self._compounds.get(refid)

    def anchor(self, refid):
        return self._places[refid][1]

    def lines(self, header):
        return (self._sources / header).read_text().splitlines()


def _short(name):
    return (name or "").removeprefix("sealpoint::").replace("::", ".").split("<")[0]


class _Writer:
    def __init__(self, headers, header):
        self._headers, self._header, self._lines = headers, header, headers.lines(header)
        self._output, self._names = [], []
        # Rulers between the sections of a header: "// ---- Values ----".
        self._rulers = [(at, match[1]) for at, line in enumerate(self._lines, 1)
                        if (match := re.match(r"// -{4} (.*?) -{4,}$", line))]
        self._level = "###" if self._rulers else "##"

    def page(self):
        compound = self._headers.files[self._header]
        self._output += [f"# {self._header.removeprefix('sealpoint/')}", "", "```cpp", f'#include "{self._header}"', "```", "",
                         self._description(compound), ""]
        rulers = list(self._rulers)
        for line, entry in self._entries(compound):
            while rulers and rulers[0][0] < line:
                self._output += [f"## {rulers.pop(0)[1]}", ""]
            self._entry(entry)
        return Page("\n".join(self._output) + "\n", self._names)

    def _entries(self, compound):
        """Line and element of what the header declares outside of classes; a group of functions is a list."""
        found = []
        for inner in compound.iter("innerclass"):
            element = self._headers.compound(inner.get("refid"))
            if element is not None and "::" not in element.findtext("compoundname").removeprefix("sealpoint::"):
                found.append((self._line(element), element))
        members = [member for member in self._headers.members[self._header] if not _is_hidden(member)]
        found += [(self._line(group[0]), group) for group in self._groups(members)]
        return sorted(found, key=lambda pair: pair[0])

    def _groups(self, members):
        """Functions without a blank line between them share the comment above the first one."""
        groups = []
        for member in sorted(members, key=self._line):
            if groups and self._shares_comment(groups[-1], member):
                groups[-1].append(member)
            else:
                groups.append([member])
        return groups

    def _shares_comment(self, group, member):
        lines = self._lines[self._line(group[0]) - 1:self._line(member)]
        return (all(each.get("kind") == "function" for each in (group[0], member)) and bool(self._description(group[0]))
                and not self._description(member) and all(line.strip() and "//" not in line for line in lines))

    def _line(self, element):
        return int(element.find("location").get("line"))

    def _entry(self, entry):
        if isinstance(entry, list):
            self._free(entry)
        else:
            self._class(entry, self._level, _short(entry.findtext("compoundname")))

    def _heading(self, level, name, anchor, kind=""):
        self._names.append(name)
        self._output += [f'{level} `{name}` {{ #{anchor}{f" data-kind={kind}" if kind else ""} }}', ""]

    def _declared(self, code):
        self._output += [f'<pre class="declaration"><code>{code}</code></pre>', ""]

    def _class(self, element, level, name):
        kind, template = element.get("kind"), self._template(element)
        self._heading(level, name, name, kind)
        bases = ", ".join(f"{base.get('prot')} {self._text(base)}" for base in element.findall("basecompoundref"))
        if template or bases:
            self._declared(f"{template}{kind} {name.rsplit('.')[-1]}{f' : {bases}' if bases else ''}")
        self._output += [self._description(element), ""]
        members = [member for member in element.iter("memberdef") if not _is_hidden(member) and member.get("prot") == "public"]
        if members:
            terms = "\n".join(self._term(group) for group in self._groups(members))
            self._output += [f'<dl class="members">\n{terms}\n</dl>', ""]
        for inner in element.findall("innerclass"):
            if inner.get("prot") == "public":
                compound = self._headers.compound(inner.get("refid"))
                self._class(compound, f"{level}#", _short(compound.findtext("compoundname")))

    def _free(self, group):
        """Declarations outside of classes, below a heading."""
        first, *others = group
        name = first.find("enumvalue/name").text + " …" if _is_unnamed(first) else first.findtext("name")
        self._heading(self._level, name, self._headers.anchor(first.get("id")))
        self._output += [f'<a id="{self._headers.anchor(each.get("id"))}"></a>' for each in others]
        self._declared("\n".join(self._declaration(each) for each in group))
        self._output += [self._about(group), ""]

    def _term(self, group):
        """Members of a class: terms of a list with one description."""
        text = ""
        for member in group:
            anchor = self._headers.anchor(member.get("id"))
            text += (f'<dt id="{anchor}"><code>{self._declaration(member)}</code>'
                     f'<a class="headerlink" href="#{anchor}" title="Permanent link">¶</a></dt>\n')
        return self._defined(text, self._about(group))

    def _about(self, group):
        return "".join(self._description(member) for member in group) + self._values(group[0])

    @staticmethod
    def _defined(terms, text):
        return f"<div>{terms}{f'<dd>{text}</dd>' if text else ''}</div>"

    def _values(self, member):
        text = ""
        for value in member.findall("enumvalue"):
            code = " ".join(filter(None, (value.findtext("name"), value.findtext("initializer"))))
            text += self._defined(f'<dt id="{self._headers.anchor(value.get("id"))}"><code>{html.escape(code)}</code></dt>',
                                  self._description(value))
        return f'<dl class="members">{text}</dl>' if text else ""

    def _template(self, element):
        parameters = element.find("templateparamlist")
        if parameters is None:
            return ""
        texts = [" ".join(filter(None, (self._text(each.find("type")), html.escape(each.findtext("declname") or ""))))
                 for each in parameters.findall("param")]
        return f"template &lt;{', '.join(texts)}&gt;\n"

    def _declaration(self, member):
        kind, name = member.get("kind"), html.escape(member.findtext("name") or "")
        initial = self._text(member.find("initializer"))
        if kind == "enum":
            underlying, name = member.findtext("type"), "" if _is_unnamed(member) else name
            return f"enum{' class' if member.get('strong') == 'yes' else ''}{' ' + name if name else ''}" + (
                f" : {html.escape(underlying)}" if underlying else "")
        if kind == "define":
            parameters = ", ".join(each.findtext("defname") or "" for each in member.findall("param"))
            return f"#define {name}{f'({parameters})' if parameters else ''} {initial}".rstrip()
        if kind == "typedef":
            definition = member.findtext("definition")
            aliased, behind = self._text(member.find("type")), html.escape(member.findtext("argsstring") or "")
            return f"using {name} = {aliased}" if definition.startswith("using") else f"typedef {aliased} {name}{behind}"
        words = ["static"] * (member.get("static") == "yes") + ["explicit"] * (member.get("explicit") == "yes")
        type_text = re.sub(r"^(virtual|inline|static|friend) ", "", self._text(member.find("type")))
        head = " ".join([*words, type_text, name]).replace("  ", " ").strip()
        if kind != "function":
            return self._template(member) + head + html.escape(member.findtext("argsstring") or "") + (
                f" {initial}" if initial.startswith("=") else initial)
        return self._template(member) + head + self._arguments(member)

    def _arguments(self, member):
        texts = []
        for each in member.findall("param"):
            value = self._text(each.find("defval"))
            text = f"{self._text(each.find('type'))} {html.escape(each.findtext('declname') or '')}".strip()
            texts.append(text + html.escape(each.findtext("array") or "") + (f" = {value}" if value else ""))
        tail = " const" if member.get("const") == "yes" else ""
        tail += " &amp;&amp;" if member.get("refqual") == "rvalue" else ""
        line = f"({', '.join(texts)}){tail}"
        plain = html.unescape(re.sub(r"<[^>]*>", "", line))
        return line if len(plain) < 72 or len(texts) < 2 else "(\n    " + ",\n    ".join(texts) + f"){tail}"

    def _description(self, element):
        texts = [self._inner(element.find(tag)) for tag in ("briefdescription", "detaileddescription")
                 if element.find(tag) is not None]
        return "".join(text.strip() for text in texts)

    def _inner(self, element):
        """Content as HTML, on one line, so that Markdown leaves it alone."""
        text = self._plain(element.text)
        for child in element:
            text += self._element(child) + self._plain(child.tail)
        return text

    def _element(self, child):
        if child.tag == "ref":
            return self._reference(child)
        if child.tag not in TAGS:
            raise ValueError(f"{self._header}: Doxygen made <{child.tag}>, expected one of {sorted(TAGS)}")
        has_list = any(child.find(tag) is not None for tag in ("itemizedlist", "orderedlist"))
        tag = "div" if has_list else TAGS[child.tag]
        return f"<{tag}>{self._inner(child).strip()}</{tag}>"

    def _reference(self, element):
        address, text = self._headers.address(self._header, element.get("refid")), html.escape(element.text or "")
        return f'<a href="{address}">{text}</a>' if address else text

    def _plain(self, text):
        escaped = html.escape(re.sub(r"\s+", " ", text or ""), quote=False)
        return MENTION.sub(lambda match: f'<a href="{self._headers.document(self._header, match[1])}">{match[1]}</a>', escaped)

    def _text(self, element):
        """Code, in which names are links."""
        if element is None:
            return ""
        text = html.escape(element.text or "", quote=False)
        for child in element:
            text += self._reference(child) + html.escape(child.tail or "", quote=False)
        text = re.sub(r"&lt; ", "&lt;", text)
        text = re.sub(r" &gt;", "&gt;", text)
        return re.sub(r" (&amp;|\*)", r"\1", text).strip() if element.tag == "type" else text.strip()
