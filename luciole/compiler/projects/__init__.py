"""Projects around a network in C: what builds it, and a program that runs its self test."""
