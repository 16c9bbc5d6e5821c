"""Channels: how people are asked."""
