"""Approvals going wrong on purpose: the same scenarios for Toolgate and its peers, each in its own environment."""
