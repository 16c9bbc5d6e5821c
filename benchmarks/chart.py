"""Draw one horizontal bar chart as SVG text, readable on light and dark pages."""

from html import escape

LABEL = 130
PLOT = 460
ROW = 30
TOP = 44


def bars(title: str, values: dict[str, float], *, ours: str) -> str:
    """Return an SVG with one bar per value, shortest first, the bar named `ours` in another colour."""
    longest = max(values.values())
    height = TOP + ROW * len(values) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LABEL + PLOT + 80} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        '<g font-family="sans-serif" font-size="13">',
        f'<text x="12" y="24" font-size="15" fill="#6b7280">{escape(title)}</text>',
    ]
    for number, (name, value) in enumerate(sorted(values.items(), key=lambda item: item[1])):
        y = TOP + number * ROW
        width = max(PLOT * value / longest, 1)
        colour = "#2563eb" if name == ours else "#9ca3af"
        parts.append(
            f'<text x="{LABEL - 8}" y="{y + 15}" text-anchor="end" fill="#6b7280">{escape(name)}</text>'
            f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="20" rx="2" fill="{colour}"/>'
            f'<text x="{LABEL + width + 6:.1f}" y="{y + 15}" fill="#6b7280">{value:.1f}</text>'
        )
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"
