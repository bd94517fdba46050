"""
One chart as SVG: positions across are per cent, so that it fits a phone and a page while its letters keep their size.

Nothing is told by colour alone: forward is filled, back is hatched, a wait is dotted, a hold is a black bar. Every text is escaped by
the serializer. Each chart says what it shows in `title` and `desc`, and each mark in its own `title`.
"""

from __future__ import annotations

import base64
from xml.etree import ElementTree as ET

from flows.visible import cut, one_line

WIDTH = 620  # of a picture in a page of Prefect's; beside the page's text, which is 65 letters wide
NAMESPACE = "http://www.w3.org/2000/svg"
STYLE = (".rc{font:12px system-ui,sans-serif;fill:currentColor;max-width:100%}.rc text{fill:currentColor}.rc .small{font-size:11px}"
         ".rc .bold{font-weight:600}.rc .axis{stroke:currentColor;stroke-opacity:.35}.rc .stands{stroke:currentColor;stroke-width:2}"
         ".rc .forward{fill:#2f6fb0}.rc .plain{fill:#8a93a0}.rc .hold{fill:currentColor}.rc .bad{fill:#b3261e;stroke:currentColor}"
         ".rc .edge{fill:none;stroke:currentColor;stroke-opacity:.7}.rc .mark{stroke:currentColor;stroke-width:2}")
MOST_TITLE, MOST_DESCRIPTION = 200, 1500


class Chart:
    """A chart called *ident*, which must be its own within a page, *height* pixels high."""

    def __init__(self, ident: str, title: str, description: str, height: int) -> None:
        self.ident, self.title, self.description, self.height = ident, one_line(title), cut(one_line(description), MOST_DESCRIPTION), height
        self._root = ET.Element("svg", {"class": "rc", "width": "100%", "height": f"{height}", "role": "img",
                                                 "aria-labelledby": f"{ident}-t {ident}-d"})
        ET.SubElement(self._root, "title", {"id": f"{ident}-t"}).text = self.title
        ET.SubElement(self._root, "desc", {"id": f"{ident}-d"}).text = self.description
        self._patterns()

    def _patterns(self) -> None:
        defined = ET.SubElement(self._root, "defs")
        for name, colour, path in (("back", "#b45309", "M-1,7 l8,-8 M-1,1 l2,-2 M5,7 l2,-2"), ("wait", "currentColor", "M1,3 h2")):
            pattern = ET.SubElement(defined, "pattern", {"id": f"{self.ident}-{name}", "width": "6", "height": "6",
                                                                  "patternUnits": "userSpaceOnUse"})
            ET.SubElement(pattern, "path", {"d": path, "stroke": colour, "stroke-width": "2", "fill": "none"})

    def pattern(self, name: str) -> str:
        """The fill `back` or `wait`."""
        return f"url(#{self.ident}-{name})"

    def box(self, left: float, top: float, width: float, height: float, kind: str, told: str) -> None:
        """A rectangle of *kind* `forward`, `back`, `wait`, `hold`, `plain` or `bad`; *left* and *width* are per cent."""
        place = {"x": f"{left:.2f}%", "y": f"{top:g}", "width": f"{max(width, 0.1):.2f}%", "height": f"{height:g}"}
        if kind in ("back", "wait"):
            look = {"fill": self.pattern(kind), "stroke": "currentColor", "stroke-opacity": ".7"}
        else:
            look = {"class": kind}
        mark = ET.SubElement(self._root, "rect", place | look)
        ET.SubElement(mark, "title").text = cut(one_line(told), MOST_TITLE)

    def line(self, left: float, top: float, right: float, bottom: float, kind: str = "axis") -> None:
        ET.SubElement(self._root, "line", {"x1": f"{left:.2f}%", "y1": f"{top:g}", "x2": f"{right:.2f}%", "y2": f"{bottom:g}",
                                                    "class": kind})

    def dot(self, left: float, top: float, kind: str, told: str) -> None:
        mark = ET.SubElement(self._root, "circle", {"cx": f"{left:.2f}%", "cy": f"{top:g}", "r": "4", "class": kind})
        ET.SubElement(mark, "title").text = cut(one_line(told), MOST_TITLE)

    def text(self, left: float, top: float, text: str, anchor: str = "start", kind: str = "") -> None:
        place = {"x": f"{left:.2f}%", "y": f"{top:g}", "text-anchor": anchor} | ({"class": kind} if kind else {})
        ET.SubElement(self._root, "text", place).text = one_line(text)

    def inline(self) -> str:
        """For a page that has :data:`STYLE` itself."""
        return ET.tostring(self._root, encoding="unicode")

    def data_uri(self) -> str:
        """The chart as a picture of its own, on white: a page in the dark shows it too."""
        alone = ET.fromstring(self.inline())  # noqa: S314  # our own text of a moment ago
        alone.set("xmlns", NAMESPACE)
        alone.set("width", f"{WIDTH}")
        alone.set("style", "background:#fff;color:#111")
        for mark in alone:
            for told in mark.findall("title"):  # a picture in a page answers no pointer
                mark.remove(told)
        style = ET.Element("style")
        style.text = STYLE
        alone.insert(0, style)
        alone.insert(1, ET.Element("rect", {"width": "100%", "height": "100%", "fill": "#fff"}))
        return "data:image/svg+xml;base64," + base64.b64encode(ET.tostring(alone, encoding="utf-8")).decode()
