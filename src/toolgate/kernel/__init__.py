"""Pure values and decisions: what a call is, what may follow, who must say yes. No I/O."""
