"""The load report: how cost grows with stores, servers, workers, pending approvals and events."""
