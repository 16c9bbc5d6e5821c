"""What time and death do to calls: deadlines, offers, recovery."""
