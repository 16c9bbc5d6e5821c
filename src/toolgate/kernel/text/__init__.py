"""Bytes and words: masking, rendering, differences, wire formats, schemas, canonical JSON."""
