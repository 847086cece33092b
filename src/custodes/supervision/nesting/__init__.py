"""A child's own children: how they travel, their process's side, and their parent's."""
