"""Every call's way, stage by stage. Read this list first, then the files in its order."""

STAGES = ("resolve", "validate", "permit", "assess", "approve", "permit", "execute", "record")
"""One module each. Permit runs twice: before anybody is asked and again before the call runs."""
