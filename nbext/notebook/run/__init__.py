"""What each magic does once its text is read."""
