"""Horizontal circuits for vision, the tasks that test them, and a study of both."""
