"""What a hit needs: a program checked, loaded, linked and called. Nothing here rewrites, lowers or compiles."""
