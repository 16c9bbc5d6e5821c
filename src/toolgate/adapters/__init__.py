"""What the ports look like in practice: a folder for each technology, what they share, runners, channels, telemetry."""
