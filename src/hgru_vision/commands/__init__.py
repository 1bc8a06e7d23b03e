"""What each command of `hgru` does: one function a command, its parameters are the flags."""
