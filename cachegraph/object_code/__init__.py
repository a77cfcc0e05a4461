"""Object code: its symbols and form, the CPU levels it is made for, and the C functions that it calls."""
