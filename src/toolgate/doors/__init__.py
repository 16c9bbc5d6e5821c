"""What the documents' modules share: a project of their own on a gate, questions by hand, one object per process."""
