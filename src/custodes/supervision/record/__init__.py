"""What is written down of the work, who wrote it and when, and what is made of the rows of the dead."""
