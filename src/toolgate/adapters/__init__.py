"""What the ports look like in practice: one folder per family, one file per adapter."""
