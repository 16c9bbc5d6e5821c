"""How text that others wrote is shown to somebody who must decide: whole, unmoved, and with nothing hidden.

`reveal` makes what cannot be seen visible, `as_lines` lays a JSON value out, `clip` says how much it leaves out.
What is ordinary writing in any language stays exactly as it is. All of it is linear in the length of the text.
"""

from toolgate.kernel.text.rendering.budget import BUDGET, Budget, Clipped, clip, clip_entries, clip_field, cut_piece
from toolgate.kernel.text.rendering.layout import as_lines, brief, lay_out
from toolgate.kernel.text.rendering.suspects import Revealed, few, reveal, suspicious, warn

__all__ = [
    "BUDGET",
    "Budget",
    "Clipped",
    "Revealed",
    "as_lines",
    "brief",
    "clip",
    "clip_entries",
    "clip_field",
    "cut_piece",
    "few",
    "lay_out",
    "reveal",
    "suspicious",
    "warn",
]
