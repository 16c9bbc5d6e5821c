"""Two example tools: edit a document, which asks and can be undone, and store a memory, which anybody may.

They work on an `Archive` in memory. `register_examples(registry)` offers them.
"""

from __future__ import annotations

from toolgate.tools.definitions import ToolDefinition, ToolInput, ToolOutput, UndoMetadata
from toolgate.tools.registry import ToolRegistry


class Archive:
    """Documents by id, and memories in the order they were stored."""

    def __init__(self) -> None:
        self.documents: dict[str, str] = {}
        self.memories: list[str] = []

    async def edit(self, given: ToolInput) -> ToolOutput:
        """Replace a document's content; the old content is left for the undo."""
        id, content = given.payload["document_id"], given.payload["content"]
        before = self.documents.get(id)
        self.documents[id] = content
        return ToolOutput.ok(
            {"document_id": id, "characters": len(content)},
            undo_metadata={"document_id": id, "before": before, "after": content},
        )

    async def undo_edit(self, metadata: UndoMetadata) -> None:
        """Put the old content back, or take away a document that was not there."""
        id, before = metadata.undo_data["document_id"], metadata.undo_data["before"]
        if before is None:
            self.documents.pop(id, None)
        else:
            self.documents[id] = before

    async def current(self, metadata: UndoMetadata) -> str | None:
        """What the document is now: an undo of an edit that somebody else edited since is refused."""
        return self.documents.get(metadata.undo_data["document_id"])

    async def remember(self, given: ToolInput) -> ToolOutput:
        """Keep a line of text."""
        self.memories.append(given.payload["text"])
        return ToolOutput.ok({"memories": len(self.memories)})


def edit_document(archive: Archive) -> ToolDefinition:
    """The tool that edits documents of this archive."""
    return ToolDefinition(
        name="EDIT_DOCUMENT",
        description="Replace the content of a document.",
        input_schema={
            "type": "object",
            "properties": {"document_id": {"type": "string"}, "content": {"type": "string"}},
            "required": ["document_id", "content"],
            "additionalProperties": False,
        },
        handler=archive.edit,
        allowed_behaviors=("doc_edit", "practice"),
        requires_approval=True,
        approval_message="An agent wants to change a document.",
        undoable=True,
        undo_handler=archive.undo_edit,
        fingerprint=archive.current,
        artifact_type="document",
        effects="reversible",
    )


def store_memory(archive: Archive) -> ToolDefinition:
    """The tool that keeps memories in this archive."""
    return ToolDefinition(
        name="STORE_MEMORY",
        description="Remember a line of text.",
        input_schema={
            "type": "object",
            "properties": {"text": {"type": "string", "minLength": 1}},
            "required": ["text"],
            "additionalProperties": False,
        },
        handler=archive.remember,
    )


def register_examples(registry: ToolRegistry, archive: Archive | None = None) -> Archive:
    """Offer both tools in a registry; return the archive they work on."""
    archive = archive if archive is not None else Archive()
    registry.register(edit_document(archive))
    registry.register(store_memory(archive))
    return archive


ARCHIVE = Archive()
EDIT_DOCUMENT = edit_document(ARCHIVE)
STORE_MEMORY = store_memory(ARCHIVE)
