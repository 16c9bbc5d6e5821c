"""The interfaces adapters implement: where truth is kept, who is woken, who is asked, where handlers run."""
